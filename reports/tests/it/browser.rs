//! The page in a browser, if Chromium is found: no errors, every figure is drawn, everything can be reached by
//! keyboard, and nothing is wider than a phone.
//!
//! `HAVERSACK_PAGE=out/index.html` checks another page as well, and prints the findings.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::tempdir;

use crate::page::page;

/// Names of Chromium's executable.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The findings of `look.js` in `html`, in a window that is `width` pixels wide; `None` without a browser.
fn looked_at(html: &str, width: u32) -> Option<Value> {
    let browser = BROWSERS.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    });
    let Some(browser) = browser else {
        eprintln!("skipped: there is no Chromium to look at the page with");
        return None;
    };
    let folder = tempdir().unwrap();
    let (before, after) = html.split_once("<head>").unwrap();
    let page = format!("{before}<head><script>{}</script>{after}", include_str!("look.js"));
    std::fs::write(folder.path().join("page.html"), page).unwrap();
    // Windows have a least width, but a frame can be narrower.
    let around = format!(
        "<!DOCTYPE html><pre></pre><iframe src=\"page.html\" width=\"{width}\" height=\"900\" style=\"border:0\"></iframe>
         <script>addEventListener('message', (told) => document.querySelector('pre').textContent = told.data)</script>"
    );
    let path = folder.path().join("around.html");
    std::fs::write(&path, around).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1400,1000",
            "--virtual-time-budget=20000",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(&path)
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let json = dom.split_once("<pre>").and_then(|(_, rest)| rest.rsplit_once("</pre>"));
    let found = json.and_then(|(json, _)| serde_json::from_str(json).ok());
    Some(found.unwrap_or_else(|| panic!("no findings: {dom}\n{}", String::from_utf8_lossy(&output.stderr))))
}

/// Checks that apply to every page.
fn assert_sound(found: &Value) {
    for list in ["wrong", "loaded", "wider", "unreachable"] {
        assert_eq!(found[list], Value::Array(Vec::new()), "{list}: {found}");
    }
    assert_eq!(found["undrawn"], 0, "{found}");
    assert!(found["scrolls"].as_u64() <= found["width"].as_u64(), "wider than the window: {found}");
}

#[test]
fn a_browser_draws_the_page_and_the_keyboard_reaches_all_of_it() {
    // A table that is wider than the window scrolls within it.
    let mut page = page();
    page.summary.columns = (0..40).map(|column| format!("column{column:09}")).collect();
    page.summary.rows = vec![page.summary.columns.clone()];
    let html = page.render().unwrap();
    let Some(wide) = looked_at(&html, 1280) else { return };
    assert_sound(&wide);
    // The overview and the front, whose first method is switched off in both; its marks have their values in words.
    assert_eq!(wide["figures"], 2, "{wide}");
    assert_eq!(wide["folded"], false, "{wide}");
    assert_eq!(wide["tabs"], 1, "{wide}");
    assert!(wide["unseen"].as_u64() >= Some(1) && wide["values"].as_u64() >= Some(6), "{wide}");
    assert!(wide["tip"].as_str().is_some_and(|words| !words.is_empty()), "{wide}");
    // One of two artefacts misses nothing.
    assert_eq!(wide["hidden"], 1, "{wide}");
    let narrow = looked_at(&html, 390).unwrap();
    assert_sound(&narrow);
    assert_eq!(narrow["folded"], true, "{narrow}");
}

#[test]
fn another_page_is_looked_at_where_one_is_named() {
    let Some(path) = std::env::var_os("HAVERSACK_PAGE") else { return };
    let html = std::fs::read_to_string(Path::new(&path)).unwrap();
    for width in [1280, 390] {
        let Some(found) = looked_at(&html, width) else { return };
        println!("{width} pixels: {found}");
        assert_sound(&found);
    }
}
