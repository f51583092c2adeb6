//! Facts as they may be shown, and are therefore judged.

use crate::observe::facts::Snapshot;
use crate::text::{MAX, clean};

/// The facts with every text as a report shows it: what agents say is cut, and can do nothing to a terminal. Ids are names
/// of ours, and the owner is the system's.
pub fn clean_facts(facts: &mut Snapshot) {
    let Snapshot { session, agents, sources, .. } = facts;
    in_place(&mut session.name);
    in_place(&mut session.root_path);
    for agent in agents {
        in_place(&mut agent.name);
        agent.specialization.iter_mut().for_each(in_place);
        agent.terminal.iter_mut().for_each(|terminal| in_place(&mut terminal.id));
        for evidence in &mut agent.evidence {
            in_place(&mut evidence.word);
            evidence.detail.iter_mut().for_each(in_place);
        }
        agent.unmeasured.iter_mut().for_each(|gap| in_place(&mut gap.reason));
        if let Some(usage) = &mut agent.usage {
            usage.model.iter_mut().chain(&mut usage.current_tool).for_each(in_place);
        }
    }
    for source in sources {
        in_place(&mut source.name);
        source.error.iter_mut().for_each(in_place);
    }
}

/// Most texts are clean already, and are not copied.
fn in_place(text: &mut String) {
    if text.len() > MAX || !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        *text = clean(text);
    }
}
