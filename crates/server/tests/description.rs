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
const INTEGERS: [&str; 9] = ["1", "2", "3", "7", "0", "100", "-1", "18446744073709551615", "9007199254740992"];
const NUMBERS: [&str; 9] = ["0.01", "0.5", "1", "1.5", "20", "0", "1e-300", "1e308", "-0.0"];
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
        match *self.dice.one(&kinds(&schema).unwrap_or_else(|| vec!["null"])) {
            "object" => self.object(&schema, depth),
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
            "integer" => self.dice.one(&INTEGERS).parse().expect("a number"),
            "number" => self.dice.one(&NUMBERS).parse().expect("a number"),
            _ => Value::Null,
        }
    }

    /// What is required, and now and then what is not: mostly a budget, without which no dataset is made.
    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let needed: Vec<&str> = strings(&schema["required"]).collect();
        let mut made = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let is_budget = matches!(name.as_str(), "epsilon" | "delta");
            let is_there = if is_budget { self.dice.roll(3) > 0 } else { self.dice.roll(5) == 0 };
            if needed.contains(&name.as_str()) || is_there {
                let is_id = field["$ref"].as_str().is_some_and(|name| name.ends_with("/RequestId"));
                let id = json!(format!("q{}", self.dice.roll(500)));
                made.insert(name.clone(), if is_id { id } else { self.make(field, depth + 1) });
            }
        }
        Value::Object(made)
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
        let Some(allowed) = kinds(schema) else { return Ok(()) };
        let is_allowed = allowed.contains(&kind) || (kind == "integer" && allowed.contains(&"number"));
        if !is_allowed {
            return Err(format!("{value} is no {allowed:?}"));
        }
        if let Value::Array(list) = value {
            return list.iter().try_for_each(|each| self.fits(&schema["items"], each));
        }
        let Value::Object(map) = value else { return Ok(()) };
        for needed in strings(&schema["required"]) {
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

/// The strings of a list, if it is one.
fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The types that a schema allows; `None` where it says nothing.
fn kinds(schema: &Value) -> Option<Vec<&str>> {
    match &schema["type"] {
        Value::String(kind) => Some(vec![kind]),
        list @ Value::Array(_) => Some(strings(list).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Something that can be asked, as it is described.
struct Operation {
    id: String,
    method: String,
    path: String,
    described: Value,
}

impl Operation {
    /// All of them; without a token there is no answer.
    async fn all(app: &Router, description: &Value) -> Vec<Self> {
        let mut all = Vec::new();
        for (path, methods) in description["paths"].as_object().expect("paths") {
            for (method, described) in methods.as_object().expect("methods") {
                let id = described["operationId"].as_str().expect("an id").to_owned();
                all.push(Self { id, method: method.clone(), path: path.clone(), described: described.clone() });
                let (status, said) = ask(app, method, &path.replace(['{', '}'], ""), None, Vec::new()).await;
                assert!(status == 401 || status == 429, "{method} {path} asks for a token: {said}");
            }
        }
        assert!(all.len() >= 18, "{}", all.len());
        all
    }

    /// An address and a body, spoiled or not.
    fn request(&self, maker: &mut Maker<'_>, spoiled: bool) -> (String, Value) {
        let datasets: &[&str] = match self.id.as_str() {
            "close_dataset" => &["old", "nowhere"],
            _ => &["sales", "sales", "sales", "events", "x", "nowhere", "%2e%2e", "a%00b"],
        };
        let dataset = maker.dice.one::<&str>(datasets);
        let address = self.path.replace("{dataset}", dataset).replace("{hash}", &"0".repeat(64));
        let mut body = Value::Null;
        if let Some(content) = self.described["requestBody"]["content"]["application/json"].get("schema") {
            body = maker.make(content, 0);
            if spoiled {
                maker.spoil(&mut body);
            }
        }
        (address, body)
    }

    /// Whether it was done; either way the answer is as described, and comes soon.
    async fn ask(&self, app: &Router, token: &str, maker: &Maker<'_>, (address, body): (String, Value)) -> bool {
        let begin = std::time::Instant::now();
        let method = &self.method;
        let (status, answer) = ask(app, method, &address, Some(token), body.to_string().into_bytes()).await;
        let told = format!("{method} {address} {body}: {status} {answer}");
        assert!(status.as_u16() < 500, "{told}");
        assert!(begin.elapsed().as_secs() < 20, "{told}");
        let key = if status == 200 { "200" } else { "4XX" };
        let content = &self.described["responses"][key]["content"];
        assert!(content.is_object(), "not described: {told}");
        if let Some(schema) = content["application/json"].get("schema") {
            maker.fits(schema, &answer).unwrap_or_else(|error| panic!("{told}\n{error}"));
        }
        status == 200
    }
}

/// A token for everything, and a few datasets.
async fn prepared(ledger: &Ledger) -> String {
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
    token
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_made_up_from_the_description() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::File(folder.path().join("a.ledger"));
    let ledger = Ledger::open(&location).await.expect("a ledger");
    let token = prepared(&ledger).await;
    let app = app(Service::new(ledger.clone(), u32::MAX, false));
    let (status, described) = ask(&app, "get", "/v1/openapi.json", None, Vec::new()).await;
    assert_eq!(status, 200);
    let operations = Operation::all(&app, &described).await;
    let schemas = described["components"]["schemas"].as_object().expect("schemas");
    let mut maker = Maker { schemas, dice: Dice(20_261_116) };
    let mut good: BTreeMap<&str, u32> = BTreeMap::new();
    let rounds: usize = std::env::var("PAYGO_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    for round in 0..rounds {
        for operation in &operations {
            let request = operation.request(&mut maker, round % 3 == 2);
            if operation.ask(&app, &token, &maker, request).await {
                *good.entry(&operation.id).or_default() += 1;
            }
        }
    }
    let never = operations.iter().map(|operation| operation.id.as_str()).filter(|id| !good.contains_key(id));
    let never: Vec<&str> = never.collect();
    assert_eq!(never, ["revoke_token"], "each does what it says now and then; a hash cannot be guessed: {good:?}");
    let state = ledger.read(Clone::clone);
    ledger.close().await;
    let mut store = SqlStore::open(&location).await.expect("a store");
    let report = verify(&mut store, &state, Demands::default(), |_| {}).await.expect("sound");
    assert!(report.decisions.0 > 20 && report.decisions.1 > 0, "{:?}", report.decisions);
}
