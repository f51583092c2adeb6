//! Cases that users of such tools have reported, each by its number, and which tests hold it. What has a test of its own
//! here is named `case_NN_…`; the others are held where the part that they are about is tested.

mod closed_doors;
mod life;
mod records;
mod surroundings;

use crate::tidy::sources;
use regex::Regex;
use std::collections::BTreeSet;

/// Each case, and the tests that hold it.
const CASES: &[(&str, &[&str])] = &[
    (
        "01 a recycled pid: the agent is dead, nothing of the newcomer is its",
        &[
            "another_process_with_an_agents_pid_is_not_that_agent",
            "a_pid_that_is_used_again_is_another_process",
            "the_next_process_with_its_pid_is_another_agent_or_none",
            "a_record_of_another_process_with_the_same_pid_claims_nothing",
        ],
    ),
    (
        "02 a zombie with a living child: dead whatever its record says, and the child is left over",
        &[
            "case_02_a_zombie_is_dead_whatever_it_said_and_its_child_is_left_over",
            "a_zombie_shows_how_it_ended",
            "a_zombie_has_ended_and_does_not_come_back",
        ],
    ),
    (
        "03 threads are not processes",
        &["case_03_threads_are_not_processes_and_memory_counts_once", "a_thread_is_not_a_process"],
    ),
    (
        "05 short-lived children: their CPU time is never lost and never negative",
        &[
            "waited_children_count_though_no_sample_saw_them",
            "what_a_child_used_after_it_was_last_seen_comes_through_its_parent",
            "a_counter_that_falls_is_not_counted_again",
        ],
    ),
    (
        "06 shared pages count once, or the sum is called an upper bound",
        &["pages_that_forked_children_share_count_once", "where_shared_pages_are_not_told_the_sum_is_an_upper_bound"],
    ),
    (
        "08 waiting with a reason, then answered, then killed",
        &[
            "an_agent_waits_works_rests_and_dies_as_its_record_and_its_process_say",
            "an_answered_prompt_leaves_no_reason_behind",
        ],
    ),
    (
        "09 an unknown word is unknown, and `shell` is idle",
        &[
            "each_status_is_one_claim",
            "an_unknown_word_keeps_no_older_work",
            "an_agent_waits_works_rests_and_dies_as_its_record_and_its_process_say",
        ],
    ),
    (
        "10 a long quiet turn is work, and without a trace a stall",
        &["a_long_quiet_turn_is_work_as_long_as_something_is_to_be_seen", "a_long_turn_that_can_be_seen_is_work"],
    ),
    (
        "12 a job in the background that asks: waiting, since it was blocked",
        &[
            "a_background_job_that_asks_a_question_is_waiting",
            "a_background_job_that_asks_is_waiting_since_it_asked",
            "waiting_counts_from_the_block_not_from_the_work_before",
        ],
    ),
    (
        "13 Codex's turns: aborted is idle, an open one may be waiting",
        &[
            "a_turn_is_work_until_it_ends",
            "an_open_turn_is_work_that_may_be_waiting",
            "a_turn_that_has_ended_is_idleness",
        ],
    ),
    (
        "15 the same folder: each has its own conversation, and what cannot be decided is said",
        &[
            "case_15_in_one_folder_each_has_its_own_conversation",
            "two_in_one_folder_have_each_their_own_conversation_also_after_clear",
            "a_transcript_that_moved_is_found_by_its_id_if_there_is_one_only",
        ],
    ),
    (
        "16 hostile names",
        &[
            "a_hostile_folder_is_shown_without_what_acts",
            "hostile_rosters_are_refused_or_shown_without_what_acts",
            "columns_stay_aligned_whatever_the_names_are",
            "escapes_go_with_their_bodies",
        ],
    ),
    (
        "19 closed doors: alive, and each figure is missing with its reason",
        &[
            "case_19_what_the_system_hides_is_neither_dead_nor_zero",
            "a_process_that_procfs_hides_is_alive_and_its_cpu_time_known",
            "what_may_not_be_read_is_missing_with_its_reason_and_never_zero",
            "a_process_that_may_not_be_seen_is_not_called_gone",
            "a_registered_process_is_known_by_its_whole_identity",
            "one_failed_listing_ends_nothing",
            "while_processes_cannot_be_listed_the_last_facts_stay",
        ],
    ),
    ("the language of the user changes nothing", &["case_of_another_language_changes_nothing"]),
    (
        "1012 of 1024 descriptors: by the fullest process's own limit",
        &[
            "descriptors_are_held_against_the_fullest_process_own_limit",
            "an_agent_near_its_limit_of_files_is_degraded_before_it_breaks",
        ],
    ),
    ("a pane that is alive with a bare shell", &["a_pane_that_lives_on_with_a_bare_shell_keeps_no_agent_alive"]),
    ("a folder that is open owns no rollout", &["only_regular_files_that_are_open_for_writing_are_found"]),
    ("a shim and the program behind it are one row", &["a_launcher_a_shim_or_a_second_start_is_the_same_agent"]),
    ("a prompt that mentions `--bg-spare` is a prompt", &["a_prompt_that_mentions_an_exclusion_is_still_a_prompt"]),
    (
        "a slow download is no permission prompt",
        &["case_of_a_slow_tool_is_work_and_no_question", "a_call_that_waits_for_a_permission_looks_like_one_that_runs"],
    ),
    (
        "a field that was renamed is unknown and not 0",
        &[
            "case_of_a_renamed_field_is_unknown_and_not_zero",
            "a_figure_that_is_not_there_is_not_zero_and_none_runs_over",
            "tokens_are_those_of_the_whole_conversation",
            "what_is_not_there_is_not_0",
            "forms_that_nobody_knows_are_told",
        ],
    ),
    (
        "a policy that traps, loops or returns junk has failed, and the others judge on",
        &[
            "a_broken_policy_is_told_how_it_broke",
            "an_endless_loop_is_ended_soon_after_its_limit",
            "a_verdict_that_cannot_be_true_is_refused_and_says_what",
            "a_policy_that_fails_open_leaves_the_verdict_so_far",
        ],
    ),
];

#[test]
fn each_case_is_held_by_tests_that_exist() {
    let test = Regex::new(r"#\[test\]\s+(?:#\[[^\]]*\]\s+)*fn (\w+)\(").unwrap();
    let sources = sources();
    let tests: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| test.captures_iter(&source.text))
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    for (case, held_by) in CASES {
        assert!(!held_by.is_empty(), "{case} is held by nothing");
        for name in *held_by {
            assert!(tests.contains(name), "{case}: there is no test {name}");
        }
    }
    let listed: BTreeSet<&str> = CASES.iter().flat_map(|(_, tests)| tests.iter().copied()).collect();
    let named = tests.iter().filter(|name| name.starts_with("case_"));
    assert_eq!(
        named.filter(|name| !listed.contains(**name)).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "is a case of nothing"
    );
}
