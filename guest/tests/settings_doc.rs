//! `guest/SETTINGS.md` lists the settings as the policy itself describes them.

use headcount_policy::describe;
use serde_json::Value;

#[test]
fn every_setting_is_listed_with_its_default() {
    let schema: Value = serde_json::from_str(&describe().settings_schema).expect("the schema is JSON");
    let mut expected = String::from(
        "# Settings of the built-in policy\n\n\
         Given in the configuration as `[[policy]] path = \"builtin\"`, `settings = { NAME = VALUE, … }`. Durations are written as \"90s\" or \"10m\" (or \
         \"never\"), sizes as \"512MiB\" or \"8GiB\".\n\n\
         | setting | default | what it is |\n|---|---|---|\n",
    );
    for (name, of) in schema["properties"].as_object().expect("an object of settings") {
        let about = of["description"].as_str().expect("every setting is described").trim();
        expected.push_str(&format!("| `{name}` | `{}` | {about} |\n", of["default"]));
    }
    let actual = include_str!("../SETTINGS.md");
    assert!(actual == expected, "guest/SETTINGS.md should be:\n{expected}");
}
