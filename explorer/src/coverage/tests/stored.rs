//! Stored coverage that is not what was stored.

use serde_json::Value;

use super::*;

fn stored() -> Value {
    let mut coverage = Coverage::default();
    for choice in [2, 4] {
        let mut delta = Delta::default();
        delta.reach(Point::Phase { phase: "a".to_owned() }, choice);
        coverage.merge(choice, &delta).unwrap();
    }
    serde_json::to_value(coverage).unwrap()
}

#[test]
fn coverage_that_cannot_be_is_refused() {
    let id = Point::Phase { phase: "a".to_owned() }.id().to_string();
    serde_json::from_value::<Coverage>(stored()).unwrap();
    let point = format!("/points/{id}");
    for (place, value, error) in [
        (format!("{point}/hits"), json!(0), "its hits or first choice are impossible"),
        (format!("{point}/hits"), json!(3), "its hits or first choice are impossible"),
        (format!("{point}/first/choice"), json!(5), "its hits or first choice are impossible"),
        (format!("{point}/point"), json!({ "phase": { "phase": "b" } }), "is not the one with that id"),
        ("/branches".to_owned(), json!(0), "does not fit the last choice"),
        ("/branches".to_owned(), json!(6), "does not fit the last choice"),
        ("/branches".to_owned(), json!(3), "growth"),
        ("/last".to_owned(), json!(null), "does not fit the last choice"),
        ("/growth/last".to_owned(), json!(null), "growth"),
        ("/growth/samples".to_owned(), json!([]), "growth"),
        ("/growth/doublings".to_owned(), json!(1), "growth"),
        ("/growth/doublings".to_owned(), json!(64), "growth"),
    ] {
        let mut coverage = stored();
        *coverage.pointer_mut(&place).unwrap() = value.clone();
        let told = serde_json::from_value::<Coverage>(coverage).expect_err(&place).to_string();
        assert!(told.contains(error), "{place} {value}: {told}");
    }
    for key in ["X".repeat(32), id[1..].to_owned(), format!("+{}", &id[1..])] {
        let mut coverage = stored();
        let points = coverage["points"].as_object_mut().unwrap();
        let point = points.remove(&id).unwrap();
        points.insert(key, point);
        let told = serde_json::from_value::<Coverage>(coverage).unwrap_err().to_string();
        assert!(told.contains("32 hexadecimal digits"), "{told}");
    }
}
