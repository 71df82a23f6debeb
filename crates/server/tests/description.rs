//! Requests made up from the API's own description, sound and unsound ones: never a 5xx, every answer as described, and a log that holds.
//!
//! By hand and not by `jsonschema`: the same walk over the types that checks values makes them.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use paygo_ledger::Ledger;
use paygo_ledger::entry::Role;
use paygo_ledger::ledger::Requester;
use paygo_ledger::store::{Location, SqlStore};
use paygo_ledger::verify::{Demands, verify};
use paygo_ledger::words::NewToken;
use paygo_server::{Service, app};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tower::ServiceExt;

/// SplitMix64: the same requests on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).expect("small")
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }
}

/// Values for the types of a description.
struct Maker<'a> {
    schemas: &'a Map<String, Value>,
    dice: Dice,
}

const NAMES: [&str; 8] = ["sales", "events", "jan", "feb", "root", "ads", "x", "a.b-c_d@e"];
const TEXTS: [&str; 12] = ["q1", "q2", "hold", "0.1", "0.5", "3", "1e-6", "1e-5", "", "all", "π ≈ 3", "-1"];

impl Maker<'_> {
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => self.resolved(&self.schemas[name.rsplit('/').next().expect("a name")]),
            // Several at once: a schema, and words about it.
            None if schema["allOf"].is_array() => {
                let (first, rest) = schema["allOf"].as_array().and_then(|all| all.split_first()).expect("a schema");
                let only_words = |one: &Value| one.as_object().is_some_and(|one| !one.contains_key("properties"));
                assert!(rest.iter().all(only_words), "{schema}");
                self.resolved(first)
            }
            None => schema,
        }
    }

    fn make(&mut self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolved(schema).clone();
        for word in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[word].as_array() {
                // Deep down, what has no parts of its own.
                let flat = |choice: &&Value| !choice.to_string().contains("Mechanism\"");
                let shallow: Vec<Value> = choices.iter().filter(flat).cloned().collect();
                let choice =
                    if depth > 4 && !shallow.is_empty() { self.dice.one(&shallow) } else { self.dice.one(choices) };
                let choice = choice.clone();
                return self.make(&choice, depth + 1);
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            return self.make(&all[0].clone(), depth);
        }
        if let Some(words) = schema["enum"].as_array() {
            return self.dice.one(words).clone();
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec!["null"],
        };
        match *self.dice.one(&kinds) {
            "object" => {
                let needed: Vec<&str> =
                    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let mut made = Map::new();
                for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                    if needed.contains(&name.as_str()) || self.dice.roll(5) == 0 {
                        let is_id = field["$ref"].as_str().is_some_and(|name| name.ends_with("/RequestId"));
                        let id = json!(format!("q{}", self.dice.roll(500)));
                        made.insert(name.clone(), if is_id { id } else { self.make(field, depth + 1) });
                    }
                }
                Value::Object(made)
            }
            "array" => {
                let length = self.dice.roll(4);
                (0..length).map(|_| self.make(&schema["items"], depth + 1)).collect()
            }
            "string" if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("A-Z")) => {
                json!(self.dice.one(&NAMES))
            }
            "string" if schema["pattern"].is_string() => json!("0".repeat(64)),
            "string" => json!(self.dice.one(&TEXTS)),
            "boolean" => json!(self.dice.roll(2) == 0),
            "integer" => self
                .dice
                .one(&[
                    json!(1),
                    json!(2),
                    json!(3),
                    json!(7),
                    json!(0),
                    json!(100),
                    json!(-1),
                    json!(u64::MAX),
                    json!(1_u64 << 53),
                ])
                .clone(),
            "number" => self
                .dice
                .one(&[
                    json!(0.01),
                    json!(0.5),
                    json!(1),
                    json!(1.5),
                    json!(20),
                    json!(0),
                    json!(1e-300),
                    json!(1e308),
                    json!(-0.0),
                ])
                .clone(),
            _ => Value::Null,
        }
    }

    /// Something else somewhere.
    fn spoil(&mut self, value: &mut Value) {
        if self.dice.roll(3) > 0 {
            match value {
                Value::Object(map) if !map.is_empty() => {
                    let index = self.dice.roll(map.len());
                    return self.spoil(map.values_mut().nth(index).expect("one"));
                }
                Value::Array(list) if !list.is_empty() => {
                    let index = self.dice.roll(list.len());
                    return self.spoil(&mut list[index]);
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => {}
            }
        }
        let junk = [
            json!(null),
            json!(-1),
            json!(1e300),
            json!("x".repeat(300)),
            json!([]),
            json!({"a": 1}),
            json!(true),
            json!("\u{0}"),
        ];
        *value = self.dice.one(&junk).clone();
    }

    /// Whether a value is as described.
    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = self.resolved(schema);
        for word in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[word].as_array() {
                if choices.iter().any(|choice| self.fits(choice, value).is_ok()) {
                    return Ok(());
                }
                return Err(format!("{value} is none of {schema}"));
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            return all.iter().try_for_each(|each| self.fits(each, value));
        }
        if let Some(words) = schema["enum"].as_array() {
            return if words.contains(value) { Ok(()) } else { Err(format!("{value} is not one of {words:?}")) };
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let allowed: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return Ok(()),
        };
        let is_allowed = allowed.contains(&kind) || (kind == "integer" && allowed.contains(&"number"));
        if !is_allowed {
            return Err(format!("{value} is no {allowed:?}"));
        }
        if let Value::Array(list) = value {
            return list.iter().try_for_each(|each| self.fits(&schema["items"], each));
        }
        let Value::Object(map) = value else { return Ok(()) };
        for needed in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !map.contains_key(needed) {
                return Err(format!("{value} has no {needed}"));
            }
        }
        for (name, field) in map {
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(described), _) => self.fits(described, field)?,
                (None, Value::Object(_)) => self.fits(&schema["additionalProperties"], field)?,
                (None, _) => return Err(format!("{name} is not described in {schema}")),
            }
        }
        Ok(())
    }
}

async fn ask(app: &Router, method: &str, path: &str, token: Option<&str>, body: Vec<u8>) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method.to_uppercase().as_str()).uri(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let answer = app.clone().oneshot(request.body(Body::from(body)).expect("a request")).await.expect("an answer");
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 26).await.expect("a body");
    let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
    (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_made_up_from_the_description() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::File(folder.path().join("a.ledger"));
    let ledger = Ledger::open(&location).await.expect("a ledger");
    let root = Requester { explicit_curves: true, ..Requester::new("root".parse().expect("a name")) };
    let new = NewToken {
        holder: root.name.clone(),
        role: Role::Admin,
        datasets: None,
        explicit_curves: true,
        expires_in_days: None,
    };
    let token = ledger.grant(&root, new).await.expect("granted").token;
    for new in [
        json!({"name": "sales", "filter": {"epsilon": 1000, "delta": 1e-6, "slack": 1e-7}}),
        json!({"name": "old", "filter": {"kind": "zcdp", "rho": 1}}),
        json!({"name": "events", "filter": {"epsilon": 1000, "delta": 1e-6}, "blocks": ["jan", "feb"]}),
    ] {
        ledger.create_dataset(&root, serde_json::from_value(new).expect("a dataset")).await.expect("made");
    }
    let app = app(Service::new(ledger.clone(), u32::MAX, false));
    let (status, described) = ask(&app, "get", "/v1/openapi.json", None, Vec::new()).await;
    assert_eq!(status, 200);
    let schemas = described["components"]["schemas"].as_object().expect("schemas").clone();
    let mut operations = Vec::new();
    for (path, methods) in described["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            operations.push((path.clone(), method.clone(), operation.clone()));
            let (status, said) = ask(&app, method, &path.replace(['{', '}'], ""), None, Vec::new()).await;
            assert!(status == 401 || status == 429, "{method} {path} asks for a token: {said}");
        }
    }
    assert!(operations.len() >= 18, "{}", operations.len());
    let mut maker = Maker { schemas: &schemas, dice: Dice(20_261_116) };
    let mut good: BTreeMap<String, u32> = BTreeMap::new();
    let rounds: usize = std::env::var("PAYGO_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    for round in 0..rounds {
        for (path, method, operation) in &operations {
            let id = operation["operationId"].as_str().expect("an id").to_owned();
            let datasets: &[&str] = match id.as_str() {
                "close_dataset" => &["old", "nowhere"],
                _ => &["sales", "sales", "sales", "events", "x", "nowhere", "%2e%2e", "a%00b"],
            };
            let address =
                path.replace("{dataset}", maker.dice.one::<&str>(datasets)).replace("{hash}", &"0".repeat(64));
            let mut body = Value::Null;
            if let Some(content) = operation["requestBody"]["content"]["application/json"].get("schema") {
                body = maker.make(content, 0);
                if round % 3 == 2 {
                    maker.spoil(&mut body);
                }
            }
            let begin = std::time::Instant::now();
            let (status, answer) = ask(&app, method, &address, Some(&token), body.to_string().into_bytes()).await;
            let told = format!("{method} {address} {body}: {status} {answer}");
            assert!(status.as_u16() < 500, "{told}");
            assert!(begin.elapsed().as_secs() < 20, "{told}");
            let key = if status == 200 { "200" } else { "4XX" };
            let content = &operation["responses"][key]["content"];
            assert!(content.is_object(), "not described: {told}");
            if let Some(schema) = content["application/json"].get("schema") {
                maker.fits(schema, &answer).unwrap_or_else(|error| panic!("{told}\n{error}"));
            }
            if status == 200 {
                *good.entry(id).or_default() += 1;
            }
        }
    }
    let never: Vec<&str> = operations
        .iter()
        .filter_map(|(.., operation)| operation["operationId"].as_str())
        .filter(|id| !good.contains_key(*id))
        .collect();
    assert_eq!(never, ["revoke_token"], "each does what it says now and then; a hash cannot be guessed: {good:?}");
    let state = ledger.read(Clone::clone);
    ledger.close().await;
    let report = verify(&mut SqlStore::open(&location).await.expect("a store"), &state, Demands::default(), |_| {})
        .await
        .expect("sound");
    assert!(report.decisions.0 > 20 && report.decisions.1 > 0, "{:?}", report.decisions);
}
