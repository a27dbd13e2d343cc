//! Tests of the linearizability check with random histories. The tests compare the check's verdicts with the verdicts
//! of the oracle, which tries all orders of operations. In the histories, several clients use a correct object. One
//! test checks the histories unchanged. The others first falsify up to three operations: they replace an operation's
//! result, or make the operation succeed or fail.

use proptest::prelude::*;

use super::naive::{End, Naive, happen, linearizable, lines, nothing, until};
use super::*;

/// Maximum number of operations in a history. It is small, because the oracle tries all orders of operations.
const OPERATIONS: usize = 7;

/// Returns a client's request, chosen by three numbers.
fn ask(kind: ModelKind, verb: u8, a: u8, b: u8) -> (&'static str, Value) {
    // The clients use few different arguments, so that they interact. The initial value of a register or key is null,
    // which no argument equals, so a client cannot write it.
    let (one, other) = (json!(1 + a % 3), json!(1 + b % 3));
    let verbs: &[&str] = match kind {
        ModelKind::Register => &["write", "read", "read"],
        ModelKind::Cas => &["write", "read", "read", "cas", "cas"],
        ModelKind::Kv => &["write", "read", "read", "cas", "delete"],
        ModelKind::Queue => &["enqueue", "enqueue", "dequeue"],
        ModelKind::Set => &["add", "add", "remove", "contains", "read"],
        ModelKind::Lock => &["acquire", "release"],
    };
    let f = verbs[verb as usize % verbs.len()];
    let argument = match f {
        "read" | "dequeue" | "delete" | "acquire" | "release" => Value::Null,
        "cas" => json!([one, other]),
        _ => one,
    };
    (f, argument)
}

/// Next action of a client: start an operation, let the open operation take effect, or end it.
#[derive(Debug, Clone)]
struct Step {
    process: u8,
    verb: u8,
    a: u8,
    b: u8,
    /// Before the open operation takes effect: true to let it take effect now, false if the client gives up on it.
    /// After that: true if the result is recorded.
    known: bool,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0u8..4, any::<u8>(), any::<u8>(), any::<u8>(), prop::bool::weighted(0.8));
    let step = step.prop_map(|(process, verb, a, b, known)| Step { process, verb, a, b, known });
    prop::collection::vec(step, 0..most)
}

/// Returns the operations of clients that take these steps on a correct object. If a client gives up on an operation,
/// its outcome is unknown.
fn seen(kind: ModelKind, steps: &[Step]) -> Vec<Naive> {
    let mut object = nothing(kind);
    let mut operations: Vec<Naive> = Vec::new();
    // For each process, the open operation, and its result if it took effect.
    let mut open: [Option<(usize, Option<Option<Value>>)>; 4] = [const { None }; 4];
    let mut line = 0;
    for step in steps {
        match open[step.process as usize].take() {
            None if operations.len() < OPERATIONS => {
                let (f, argument) = ask(kind, step.verb, step.a, step.b);
                open[step.process as usize] = Some((operations.len(), None));
                let process = u64::from(step.process);
                operations.push(Naive { process, f, argument, from: line, end: End::Unknown(None) });
                line += 1;
            }
            None => {}
            Some((index, None)) if step.known => {
                let said = happen(&object, &operations[index]);
                if let Some((after, _)) = &said {
                    object = after.clone();
                }
                open[step.process as usize] = Some((index, Some(said.map(|(_, said)| said))));
            }
            Some((index, happened)) => {
                operations[index].end = match happened {
                    Some(Some(said)) if step.known => End::Ok(line, said),
                    Some(None) if step.known => End::Failed(line),
                    _ => End::Unknown(Some(line)),
                };
                line += 1;
            }
        }
    }
    operations
}

/// Changes the result or the end of one operation.
fn spoil(kind: ModelKind, operations: &mut [Naive], which: usize, what: u8) {
    let ended: Vec<usize> =
        (0..operations.len()).filter(|i| operations[*i].end != End::Unknown(None)).collect();
    let Some(index) = ended.get(which % ended.len().max(1)) else { return };
    let op = &mut operations[*index];
    let (End::Ok(line, _) | End::Failed(line) | End::Unknown(Some(line))) = op.end else { return };
    let number = json!(what % 4);
    op.end = match (op.f, kind) {
        ("read", ModelKind::Set) => {
            let members = (1..4).filter(|bit| what >> bit & 1 == 1).map(|i| json!(i));
            End::Ok(line, members.collect())
        }
        ("read" | "dequeue", _) => End::Ok(line, if number == json!(0) { Value::Null } else { number }),
        ("contains", _) => End::Ok(line, json!([op.argument, what.is_multiple_of(2)])),
        _ if what.is_multiple_of(3) => End::Failed(line),
        _ => End::Ok(line, Value::Null),
    };
}

fn checked(kind: ModelKind, operations: &[Naive]) -> Report {
    report_on(spec(kind), lines(operations))
}

/// Compares a check with the oracle. The verdicts must agree. The evidence must name the completion at which the
/// oracle's verdict changes.
fn agrees(kind: ModelKind, operations: &[Naive]) -> Result<(), TestCaseError> {
    let report = checked(kind, operations);
    let expected = linearizable(kind, operations);
    let is_fine = report.keys.iter().all(|key| key.verdict == Verdict::Fine);
    prop_assert_eq!(is_fine, expected, "{:?}", report);
    prop_assert_eq!(report.unknown().count(), 0);
    // A lost write is always a violation of linearizability as well.
    prop_assert!(report.lost.is_empty() || !expected, "{:?}", report);
    for evidence in violations(&report) {
        prop_assert!(evidence.earliest);
        // The evidence counts lines from 1, and the oracle counts them from 0.
        let end = evidence.operation.completed.unwrap().line as usize - 1;
        prop_assert!(!linearizable(kind, &until(operations, end)), "{}", evidence);
        prop_assert!(end > 0 && linearizable(kind, &until(operations, end - 1)), "{}", evidence);
        if kind == ModelKind::Register {
            possible(evidence, &until(operations, end), end)?;
        }
    }
    Ok(())
}

/// The evidence for a read lists exactly the possible states that the oracle finds.
fn possible(evidence: &Evidence, operations: &[Naive], end: usize) -> Result<(), TestCaseError> {
    let mut expected = Vec::new();
    for value in [json!(1), json!(2), json!(3), Value::Null] {
        let mut other = operations.to_vec();
        for op in other.iter_mut().filter(|op| matches!(op.end, End::Ok(line, _) if line == end)) {
            op.end = End::Ok(end, value.clone());
        }
        if linearizable(ModelKind::Register, &other) {
            expected.push(format!("it held {value}"));
        }
    }
    prop_assert_eq!(&evidence.possible, &expected, "{}", evidence);
    Ok(())
}

fn kinds() -> impl Strategy<Value = ModelKind> {
    prop::sample::select(MODELS.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn histories_of_a_correct_object_are_fine(kind in kinds(), steps in steps(40)) {
        let operations = seen(kind, &steps);
        let report = checked(kind, &operations);
        prop_assert!(is_fine(&report), "{:?}", report);
    }

    #[test]
    fn verdicts_on_altered_histories_are_the_oracles(
        kind in kinds(),
        steps in steps(40),
        spoilt in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut operations = seen(kind, &steps);
        for (which, what) in spoilt {
            spoil(kind, &mut operations, which, what);
        }
        agrees(kind, &operations)?;
    }

    /// Many operations have an unknown outcome. The search skips most of their orders, which must not change a verdict.
    #[test]
    fn verdicts_with_unknown_outcomes_are_the_oracles(
        kind in kinds(),
        steps in steps(40),
        forgotten in any::<u8>(),
        spoilt in prop::collection::vec((any::<usize>(), any::<u8>()), 1..3),
    ) {
        let mut operations = seen(kind, &steps);
        for (i, op) in operations.iter_mut().enumerate() {
            if let (End::Ok(line, _), 1) = (&op.end, forgotten >> (i % 8) & 1) {
                op.end = End::Unknown(Some(*line));
            }
        }
        for (which, what) in spoilt {
            spoil(kind, &mut operations, which, what);
        }
        agrees(kind, &operations)?;
    }

    /// Two keys that are used concurrently get the same verdicts as each key alone.
    #[test]
    fn keys_are_judged_alone(
        kind in kinds(),
        one in steps(24),
        other in steps(24),
        spoilt in (any::<usize>(), any::<u8>()),
    ) {
        let (one, mut other) = (seen(kind, &one), seen(kind, &other));
        spoil(kind, &mut other, spoilt.0, spoilt.1);
        let mut mixed = Vec::new();
        for (operations, key) in [(&one, "a"), (&other, "b")] {
            for (i, mut line) in of_key(key, lines(operations)).into_iter().enumerate() {
                // Each key has its own clients.
                line.node = key.to_owned();
                mixed.push((i, line));
            }
        }
        mixed.sort_by_key(|(i, _)| *i);
        let report = report_on(spec(kind), mixed.into_iter().map(|(_, line)| line).collect());
        for (operations, name) in [(&one, "\"a\""), (&other, "\"b\"")] {
            let found = report.keys.iter().find(|key| key.key.as_deref() == Some(name));
            let is_fine = found.is_none_or(|key| key.verdict == Verdict::Fine);
            prop_assert_eq!(is_fine, linearizable(kind, operations), "{:?}", report);
        }
    }
}

/// For each model, many of the generated histories are linearizable, and many are not.
#[test]
fn histories_with_and_without_an_order_are_drawn() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    for kind in MODELS {
        let mut right = 0;
        for _ in 0..200 {
            let steps = steps(40).new_tree(&mut runner).unwrap().current();
            let (which, what) = any::<(usize, u8)>().new_tree(&mut runner).unwrap().current();
            let mut operations = seen(kind, &steps);
            spoil(kind, &mut operations, which, what);
            right += usize::from(linearizable(kind, &operations));
        }
        assert!((20..=190).contains(&right), "{kind}: {right} of 200 histories are linearizable");
    }
}
