//! A real Chromium for tests, driven through `chromedriver`.
//!
//! By hand and not by `fantoccini`: tests wait for answers, so they need no runtime, and no ten crates more.

use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// An open browser, closed when it is dropped.
pub struct Browser {
    driver: Child,
    address: String,
    agent: ureq::Agent,
}

/// Keys that have no letter.
pub mod keys {
    /// Enter.
    pub const ENTER: &str = "\u{e007}";
    /// Tab.
    pub const TAB: &str = "\u{e004}";
}

impl Browser {
    /// Starts one; `None`, and a word about it on standard error, where the machine has none.
    ///
    /// # Panics
    /// When it is there and does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(driver) = driver else {
            writeln!(std::io::stderr(), "SKIPPED: Chromium, because there is no chromedriver on this machine").ok();
            return None;
        };
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(3 * PATIENCE));
        let agent = config.build().new_agent();
        let mut browser = Self { driver, address: format!("http://127.0.0.1:{port}"), agent };
        browser.eventually("chromedriver", |browser| {
            browser.agent.get(format!("{}/status", browser.address)).call().is_ok()
        });
        // As root there is no sandbox, and in a container little shared memory.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1600"];
        let asked = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}, "unhandledPromptBehavior": "accept",
        }}});
        let session = browser.post("/session", &asked)["sessionId"].as_str().expect("a session").to_owned();
        browser.address = format!("{}/session/{session}", browser.address);
        Some(browser)
    }

    #[track_caller]
    fn told(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, String> {
        let mut answer = answer.expect("the driver answers");
        let mut said: Value = answer.body_mut().with_config().limit(1 << 28).read_json().expect("JSON");
        if answer.status() == 200 { Ok(said["value"].take()) } else { Err(said["value"]["message"].to_string()) }
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    fn try_post(&self, path: &str, body: &Value) -> Result<Value, String> {
        Self::told(self.agent.post(format!("{}{path}", self.address)).send_json(body))
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let answer = self.agent.get(format!("{}{path}", self.address)).call();
        Self::told(answer).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Waits until something is so.
    ///
    /// # Panics
    /// When it takes too long.
    #[track_caller]
    pub fn eventually(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !so(self) {
            assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Opens a page.
    ///
    /// # Panics
    /// When it cannot.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// The address of the page.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn url(&self) -> String {
        self.get("/url").as_str().expect("text").to_owned()
    }

    fn find(&self, css: &str) -> Result<String, String> {
        let found = self.try_post("/element", &json!({"using": "css selector", "value": css}))?;
        let id = found.as_object().and_then(|object| object.values().next()).and_then(Value::as_str);
        id.map(str::to_owned).ok_or_else(|| "no element".to_owned())
    }

    /// Waits for an element, and for what is done with it to be possible.
    #[track_caller]
    fn with(&self, css: &str, act: impl Fn(&Self, &str) -> Result<Value, String>) -> Value {
        let begin = Instant::now();
        loop {
            let outcome = self.find(css).and_then(|element| act(self, &format!("/element/{element}")));
            match outcome {
                Ok(value) => return value,
                Err(error) => assert!(begin.elapsed() < PATIENCE, "{css}: {error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Clicks.
    ///
    /// # Panics
    /// When there is nothing to click.
    #[track_caller]
    pub fn click(&self, css: &str) {
        self.with(css, |browser, element| browser.try_post(&format!("{element}/click"), &json!({})));
    }

    /// Replaces what a field holds, by typing.
    ///
    /// # Panics
    /// When there is no such field.
    #[track_caller]
    pub fn fill(&self, css: &str, text: &str) {
        self.with(css, |browser, element| {
            browser.try_post(&format!("{element}/clear"), &json!({}))?;
            browser.try_post(&format!("{element}/value"), &json!({"text": text}))
        });
    }

    /// Types into a field or a choice, after what is there.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn choose(&self, css: &str, text: &str) {
        self.with(css, |browser, element| browser.try_post(&format!("{element}/value"), &json!({"text": text})));
    }

    /// Presses a key, wherever the focus is.
    ///
    /// # Panics
    /// When the page does not listen.
    #[track_caller]
    pub fn press(&self, key: &str) {
        let press = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": press}]}));
    }

    /// The text that is seen; empty when there is no such element.
    #[must_use]
    pub fn text(&self, css: &str) -> String {
        let element = self.find(css).map(|element| format!("{}/element/{element}/text", self.address));
        let text = element.ok().and_then(|url| Self::told(self.agent.get(url).call()).ok());
        text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Waits until a text is seen.
    ///
    /// # Panics
    /// When it does not appear.
    #[track_caller]
    pub fn sees(&self, css: &str, text: &str) {
        let begin = Instant::now();
        loop {
            let seen = self.text(css);
            if seen.contains(text) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{css} says {seen:?}; expected {text:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a script returns.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    #[must_use]
    pub fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// A command of the browser's own protocol.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    pub fn command(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// As on a screen of some size, dark or not.
    ///
    /// # Panics
    /// When the browser cannot.
    pub fn screen(&self, width: u32, height: u32, dark: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.command("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.command("Emulation.setEmulatedMedia", &features);
    }

    /// A picture of the whole page, as PNG.
    ///
    /// # Panics
    /// When it cannot be taken or written.
    pub fn picture(&self, path: &Path) {
        let taken = self.command("Page.captureScreenshot", &json!({"captureBeyondViewport": true}));
        let bytes = decoded(taken["data"].as_str().expect("base64"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }

    /// What the browser complained about since it was last asked.
    ///
    /// # Panics
    /// When it does not say.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let severe = log.as_array().expect("a list").iter().filter(|line| line["level"] == "SEVERE");
        severe.map(|line| line["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.agent.delete(&self.address).call().ok();
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}

/// Base64, as the driver writes it.
fn decoded(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let quads = letters.chunks(4).flat_map(|quad| {
        let bits = quad.iter().fold(0_u32, |bits, six| bits << 6 | u32::from(*six)) << (6 * (4 - quad.len()));
        bits.to_be_bytes().into_iter().skip(1).take(quad.len() - 1).collect::<Vec<_>>()
    });
    quads.collect()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn base64() {
        assert_eq!(
            (decoded("cGF5Z28="), decoded("cGF5Zw=="), decoded("+/8A")),
            (b"paygo".to_vec(), b"payg".to_vec(), vec![251, 255, 0])
        );
    }
}
