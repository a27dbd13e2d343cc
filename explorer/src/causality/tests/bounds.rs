//! Tests that a causality file is refused if one of its values is out of bounds. The file stores the search for the
//! step that decided a finding.

use crate::causality::result::{CODE_MAX, LINES_MAX, POINTS_MAX, SCHEMA_VERSION, STEPS_MAX};
use crate::causality::{
    Causality, CausalityEnd, CausalityError, Code, Count, Jump, Point, Step, StepKind, Vary,
};

fn causality() -> Causality {
    let count = |shown| Count { futures: 16, shown };
    Causality {
        schema_version: SCHEMA_VERSION,
        timeline: "e3:00:1/700.1".to_owned(),
        property: "p".to_owned(),
        signature: "s".to_owned(),
        found_ns: 900,
        root_ns: 700,
        end_ns: 1_000,
        vary: Vary::All,
        error_ppm: 50_000,
        why: CausalityEnd::Named,
        futures: 32,
        points: vec![Point { vtime_ns: 700, count: count(1) }, Point { vtime_ns: 800, count: count(16) }],
        jump: Some(Jump {
            from_ns: 700,
            to_ns: 800,
            before: count(1),
            after: Some(count(16)),
            probability_ppm: 990_000,
            is_narrowest: true,
            steps: vec![Step { vtime_ns: 750, kind: StepKind::Line, text: "t".to_owned() }],
            steps_count: 1,
            steps_before: Vec::new(),
            steps_after: Vec::new(),
            context: Vec::new(),
            code: Vec::new(),
        }),
        digest: String::new(),
    }
}

#[test]
fn a_file_survives_a_round_trip() {
    let causality = causality();
    assert_eq!(Causality::parse(&causality.json().unwrap()).as_ref(), Ok(&causality));
    assert_eq!(causality.at_root(), Some(Count { futures: 16, shown: 1 }));
    let other = Causality { futures: 40, why: CausalityEnd::Budget, ..causality.clone() };
    assert_eq!(other.digest_of(), causality.digest_of(), "the reason of the end depends on the host");
    let mut other = causality.clone();
    other.points[0].count.shown = 2;
    assert_ne!(other.digest_of(), causality.digest_of());
}

#[test]
fn impossible_contents_are_refused() {
    let refused = |change: &dyn Fn(&mut Causality)| {
        let mut causality = causality();
        change(&mut causality);
        Causality::parse(&causality.json().unwrap()).unwrap_err().to_string()
    };
    assert!(refused(&|it| it.schema_version = 3).contains("version 3"));
    assert!(refused(&|it| it.points.reverse()).starts_with("points"));
    assert!(refused(&|it| it.points[0].count.shown = 17).starts_with("a count"));
    assert!(refused(&|it| it.futures = 3).starts_with("a count"));
    assert!(refused(&|it| it.jump.as_mut().unwrap().to_ns = 1).starts_with("jump"));
    let many = |it: &mut Causality| {
        let jump = it.jump.as_mut().unwrap();
        jump.steps = vec![jump.steps[0].clone(); STEPS_MAX + 1];
    };
    assert!(refused(&many).contains("steps"));
    let many = |it: &mut Causality| {
        let text = String::new;
        let code = Code { node: text(), program: text(), place: text(), edges: 1, lines: Vec::new() };
        it.jump.as_mut().unwrap().code = vec![code; CODE_MAX + 1];
    };
    assert!(refused(&many).contains("too many functions"));
    let many = |it: &mut Causality| {
        let text = String::new;
        let lines = vec![text(); LINES_MAX + 1];
        it.jump.as_mut().unwrap().code =
            vec![Code { node: text(), program: text(), place: text(), edges: 1, lines }];
    };
    assert!(refused(&many).contains("too many source lines"));
    let many = |it: &mut Causality| {
        let point = |vtime_ns| Point { vtime_ns, count: Count::default() };
        it.points = (0..=POINTS_MAX as u64).map(point).collect();
    };
    assert!(refused(&many).contains("points: there are too many"));
    assert!(matches!(Causality::parse("{}"), Err(CausalityError::Json(_))));
    assert!(matches!(Causality::parse("\u{0}"), Err(CausalityError::Json(_))));
}

#[test]
fn intervals_of_wilson() {
    let close = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 5e-4 && (b - d).abs() < 5e-4;
    assert!(close(Count { futures: 10, shown: 0 }.between(), (0.0, 0.2775)));
    assert!(close(Count { futures: 10, shown: 5 }.between(), (0.2366, 0.7634)));
    assert!(close(Count { futures: 100, shown: 100 }.between(), (0.9630, 1.0)));
    assert_eq!(Count::default().between(), (0.0, 1.0));
}
