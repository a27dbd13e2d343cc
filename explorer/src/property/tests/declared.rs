//! Tests of valid and invalid declarations of properties in world files.

use everett_input::causes::with_causes;

use super::*;

fn refused(value: serde_json::Value) -> String {
    with_causes(&Properties::new(&configs(value), &[], &nodes()).unwrap_err())
}

#[test]
fn errors_name_the_property_and_the_key() {
    let long = "x".repeat(65);
    let form = "give exactly one of \"never\", \"eventually\" and \"sometimes\"";
    let name = "name: 1 to 64 of a-z, A-Z, 0-9, ' ', '-', '_', '.'";
    for (declared, error) in [
        (json!({ "name": "p", "never": "(" }), "property \"p\": never: regex parse error: unclosed group"),
        (
            json!({ "name": "p", "eventually": "x".repeat(1025) }),
            "property \"p\": eventually: at most 1024 bytes",
        ),
        (
            json!({ "name": "p", "sometimes": "a{1000}{1000}" }),
            "property \"p\": sometimes: Compiled regex exceeds size limit of 1048576 bytes.",
        ),
        (json!({ "name": "p" }), &format!("property \"p\": {form}")),
        (json!({ "name": "p", "never": "a", "sometimes": "a" }), &format!("property \"p\": {form}")),
        (json!({ "name": "", "never": "a" }), &format!("property \"\": {name}")),
        (json!({ "name": "a\nb", "never": "a" }), &format!("property \"a\\nb\": {name}")),
        (json!({ "name": long, "never": "a" }), &format!("property \"{}\": {name}", "x".repeat(64))),
        (
            json!({ "name": "hung task", "never": "a" }),
            "property \"hung task\": name: a built-in property has this name",
        ),
        (
            json!({ "name": "p", "never": "a", "unit": "" }),
            "property \"p\": unit: must have from 1 to 64 bytes",
        ),
        (
            json!({ "name": "p", "never": "a", "unit": "a", "console": true }),
            "property \"p\": unit: console lines have no unit",
        ),
        (
            json!({ "name": "p", "never": "a", "nodes": ["alpah"] }),
            "property \"p\": nodes: there is no node \"alpah\"; did you mean \"alpha\"?",
        ),
        (
            json!({ "name": "p", "never": "a", "nodes": ["gamma"] }),
            "property \"p\": nodes: there is no node \"gamma\"; the nodes are alpha, beta, n1",
        ),
        (
            json!({ "name": "p", "never": "a", "violated": "" }),
            "property \"p\": violated: 1 to 128 bytes in one line",
        ),
        (
            json!({ "name": "p", "never": "a", "violated": "a\nb" }),
            "property \"p\": violated: 1 to 128 bytes in one line",
        ),
        (
            json!({ "name": "p", "sometimes": "a", "violated": "b" }),
            "property \"p\": violated: a \"sometimes\" property is never violated",
        ),
        (
            json!({ "name": "p", "never": "a", "nodes": [] }),
            "property \"p\": nodes: the list is empty; leave it out for all nodes",
        ),
    ] {
        assert_eq!(refused(json!([declared])), error);
    }
    let twice = json!([{ "name": "p", "never": "a" }, { "name": "p", "sometimes": "b" }]);
    assert_eq!(refused(twice), "property \"p\": name: another property has this name");
    let many: Vec<_> = (0..65).map(|i| json!({ "name": format!("p{i}"), "never": "a" })).collect();
    assert_eq!(refused(json!(many)), "at most 64 properties");
    assert!(Properties::new(&configs(json!(many[1..])), &[], &nodes()).is_ok());
    let longest = json!([{ "name": "Az0 -_.".repeat(9) + "x", "never": "a" }]);
    assert!(Properties::new(&configs(longest), &[], &nodes()).is_ok());
}

#[test]
fn only_built_in_properties_can_be_ignored() {
    let message = |name: &str| {
        let configs = configs(json!([{ "name": "mine", "never": "a" }]));
        with_causes(&Properties::new(&configs, &[name.to_owned()], &nodes()).unwrap_err())
    };
    let none = "ignore: there is no built-in property";
    assert_eq!(message("kernel opps"), format!("{none} \"kernel opps\"; did you mean \"kernel oops\"?"));
    assert!(
        message("mine")
            .starts_with(&format!("{none} \"mine\"; the built-in properties are \"kernel panic\", "))
    );
    let all: Vec<String> = builtin::names().map(str::to_owned).collect();
    let properties = Properties::new(&[], &all, &nodes()).unwrap();
    assert!(all.iter().all(|name| properties.ignores(name)));
    let twice = ["n1", "n1"].map(str::to_owned);
    assert_eq!(Properties::new(&[], &[], &twice).unwrap_err().to_string(), "\"n1\" names two nodes");
}

#[test]
fn tables_are_read_and_written() {
    let text =
        "name = \"no loss\"\nnever = \"lost\"\nunit = \"red*\"\nnodes = [\"alpha\"]\nconsole = false\n";
    let config: PropertyConfig = toml::from_str(text).unwrap();
    assert_eq!(toml::to_string(&config).unwrap(), text);
    // Runs store properties as JSON. The description of a violation is present only if the world declares one.
    let with_words = PropertyConfig { violated: Some("a key is gone".to_owned()), ..config.clone() };
    let json = serde_json::to_value([&config, &with_words]).unwrap();
    assert_eq!(json[0].get("violated"), None);
    let world = json!({ "property": [json[1], { "name": "other", "never": "x" }] });
    for (property, said) in
        [("no loss", "a key is gone"), ("other", "\"other\" does not hold"), ("hung task", "hung task")]
    {
        assert_eq!(violation_text::violation(&world, property), said);
        assert_eq!(violation_text::violation(&json!({}), property) == said, property != "no loss");
    }
    for wrong in ["name = \"a\"\nunits = \"a\"", "never = \"a\"", "name = \"a\"\nnever = 1"] {
        assert!(toml::from_str::<PropertyConfig>(wrong).is_err(), "{wrong}");
    }
}
