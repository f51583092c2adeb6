//! What a conversation has cost, with all the agents inside it, and how full its context is.

use super::*;

const INSIDE: &str = "projects/-w-app/s-7/subagents";

/// One answer, which is the whole line of its message.
fn answer(id: &str, input: u64, output: u64) -> String {
    format!(
        r#""type":"assistant","isSidechain":true,"message":{{"id":"{id}","model":"haiku","stop_reason":"end_turn","usage":
        {{"input_tokens":{input},"output_tokens":{output},"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}}}"#
    )
}

fn tokens(said: &Testimony) -> Option<(u64, u64)> {
    let usage = said.usage.as_ref()?;
    Some((usage.input_tokens?, usage.output_tokens?))
}

/// An agent whose own messages have cost 10 tokens to and 5 from the model.
fn spent() -> Scene {
    let mut scene = one();
    scene.session(7, &json!({"status": "idle"}));
    scene.tell(TRANSCRIPT, 5, &[PROMPT, CALL, END]);
    assert_eq!(tokens(&scene.look()), Some((10, 5)));
    scene
}

#[test]
fn what_the_agents_inside_have_cost_is_in_the_sums_each_message_once() {
    let mut scene = spent();
    let (a, b) = (answer("a", 100, 1), answer("b", 1000, 2));
    scene.tell(&format!("{INSIDE}/agent-1.jsonl"), 6, &[PROMPT, &a, &a]);
    scene.tell(&format!("{INSIDE}/agent-2.jsonl"), 6, &[PROMPT, &b, &a]);
    // An older version writes them into the agent's own transcript, too.
    scene.tell(TRANSCRIPT, 9, &[&a]);
    let said = scene.look_after(6);
    assert_eq!(tokens(&said), Some((1110, 8)));
    let usage = said.usage.unwrap();
    assert_eq!((usage.model.as_deref(), usage.subagents), (Some("opus"), Some(0)));
    scene.tell(&format!("{INSIDE}/agent-1.jsonl"), 20, &[PROMPT, &answer("c", 10_000, 3)]);
    assert_eq!(tokens(&scene.look_after(6)), Some((11_110, 11)));
    assert_eq!(tokens(&scene.look_after(6)), Some((11_110, 11)), "nothing is read again");
}

#[test]
fn what_they_had_cost_before_the_process_started_is_the_conversations_too() {
    let mut scene = spent();
    let old = format!("{INSIDE}/agent-old.jsonl");
    scene.tell(&old, 0, &[&answer("old", 500, 50)]);
    let before = std::time::UNIX_EPOCH + Duration::from_millis(START - 3_600_000);
    fs::File::options().append(true).open(scene.path(&old)).unwrap().set_modified(before).unwrap();
    let said = scene.look_after(6);
    assert_eq!((tokens(&said), said.usage.unwrap().subagents), (Some((510, 55)), Some(0)));
}

#[test]
fn while_one_of_them_is_being_read_the_sum_is_not_known() {
    let mut scene = spent();
    scene.tell(&format!("{INSIDE}/agent-1.jsonl"), 6, &[&answer("a", 100, 1)]);
    long_transcript(&scene.path(&format!("{INSIDE}/agent-2.jsonl")), 20);
    let said = scene.look_after(6);
    assert_eq!(tokens(&said), None);
    let of_usage: Vec<_> = gaps(&said).into_iter().filter(|(field, _)| *field == "usage").collect();
    let [(_, why)] = of_usage[..] else { panic!("{of_usage:?}") };
    assert!(why.starts_with("transcripts of its subagents: still reading, "), "{why}");
    assert_eq!(said.usage.unwrap().model.as_deref(), Some("opus"), "the rest is known");
    scene.look_after(1);
    assert!(tokens(&scene.look_after(1)).is_some_and(|(input, _)| input >= 110));
}

#[test]
fn where_one_of_them_cannot_be_read_the_sum_is_not_known() {
    let mut scene = spent();
    fs::create_dir_all(scene.path(&format!("{INSIDE}/agent-1.jsonl"))).unwrap();
    let said = scene.look_after(6);
    assert_eq!(tokens(&said), None);
    assert!(gaps(&said).iter().any(|(field, why)| *field == "usage" && why.contains("its subagents: ")), "{said:?}");
}

#[test]
fn how_full_the_context_is_is_said_only_where_its_size_is_known() {
    let mut scene = spent();
    let said = scene.look();
    assert_eq!(said.usage.as_ref().unwrap().context_used_percent, None);
    assert_eq!(gaps(&said), [("context-used-percent", "how large its model's context is, is not recorded")]);
    let large = END.replace("\"opus\"", "\"opus[1m]\"").replace("\"m2\"", "\"m3\"").replace(":80,", ":249999,");
    scene.tell(TRANSCRIPT, 9, &[&large]);
    let said = scene.look();
    assert_eq!((said.usage.as_ref().unwrap().context_used_percent, gaps(&said)), (Some(25.0), vec![]));
    // A figure of it is missing.
    let renamed = large.replace("cache_creation_input_tokens", "cache_made").replace("\"m3\"", "\"m4\"");
    scene.tell(TRANSCRIPT, 10, &[&renamed]);
    assert_eq!(scene.look().usage.unwrap().context_used_percent, None);
    // An agent inside has a context of its own.
    scene.tell(TRANSCRIPT, 11, &[&large.replace("\"m3\"", "\"m5\""), &answer("x", 7, 7)]);
    assert_eq!(scene.look().usage.unwrap().context_used_percent, Some(25.0));
}
