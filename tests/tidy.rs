//! The rules of the tree that no compiler checks: who may import whom, what is pure, how long a
//! file may be, and that the documents say what the code does.

use std::fs;
use std::path::{Path, PathBuf};

/// Lowest rank first. A top-level module imports modules of a lower rank only.
const RANKS: &[(&str, u8)] = &[
    ("limits", 0),
    ("ids", 1),
    ("json", 2),
    ("http", 2),
    ("sse", 2),
    ("mcp", 3),
    ("session", 4),
    ("upstream", 4),
    ("telemetry", 4),
    ("shard", 5),
    ("net", 5),
    ("proxy", 6),
    ("server", 7),
    ("control", 8),
    ("cli", 9),
];

/// Modules of this rank and below are pure: no I/O, no async, no clock, no randomness, no logging.
const PURE_RANK_MAX: u8 = 4;

/// What a pure module never names.
const IMPURE: &[&str] = &[
    "async ",
    ".await;",
    ".await?",
    "monoio",
    "tokio",
    "tracing::",
    "std::fs",
    "std::io",
    "std::thread",
    "TcpStream",
    "Instant::now",
    "SystemTime",
    "println!",
];

const PRODUCTION_LINES_MAX: usize = 500;
const FILE_LINES_MAX: usize = 800;
const COLUMNS_MAX: usize = 100;

/// One file of the project, by its path from the root.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The part before the unit tests.
    fn production(&self) -> &str {
        self.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
    }

    /// Lines of that part with their numbers, comments left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_code = |(_, line): &(usize, &str)| !line.trim_start().starts_with("//");
        (1..).zip(self.production().lines()).filter(is_code)
    }

    /// `src/a/b.rs` is `["a", "b"]`, `src/a/mod.rs` is `["a"]`.
    fn module(&self) -> Vec<String> {
        let mut parts: Vec<String> = self
            .path
            .with_extension("")
            .iter()
            .skip(1)
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        if parts.last().is_some_and(|last| last == "mod") {
            parts.pop();
        }
        parts
    }

    fn is_test_module(&self) -> bool {
        self.module().iter().any(|part| part == "tests" || part == "hostile")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` whose name ends so, in a stable order.
fn sources(folder: &str, extension: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder exists") {
            let path = entry.expect("the entry can be read").path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let is_installed =
                name.is_some_and(|name| name.starts_with('.') || name == "node_modules");
            if path.is_dir() && !is_installed {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = fs::read_to_string(&path).expect("a source is text");
                let path = path.strip_prefix(root()).expect("it is below the root").to_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "no .{extension} below {folder}");
    found
}

fn rust_files() -> Vec<Source> {
    ["src", "tests", "loadtest/src"].iter().flat_map(|folder| sources(folder, "rs")).collect()
}

fn rank(module: &str) -> Option<u8> {
    RANKS.iter().find(|(name, _)| *name == module).map(|(_, rank)| *rank)
}

/// Fails with all complaints at once.
fn report(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_module_has_a_rank() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("the library has a root");
    let declared: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ").and_then(|line| line.strip_suffix(';')))
        .collect();
    let ranked: Vec<&str> = RANKS.iter().map(|(name, _)| *name).collect();
    assert_eq!(declared, ranked, "src/lib.rs lists the modules in the order of their ranks");
}

#[test]
fn imports_go_down_the_ranks() {
    let mut complaints = Vec::new();
    for source in sources("src", "rs").iter().filter(|source| !source.is_test_module()) {
        let module = source.module();
        let Some(own) = module.first().and_then(|name| rank(name)) else { continue };
        for (number, line) in source.code() {
            for part in line.split("crate::").skip(1) {
                let name: String =
                    part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_own = module.first() == Some(&name);
                if !is_own && rank(&name).is_none_or(|rank| own <= rank) {
                    let path = source.path.display();
                    complaints.push(format!("{path}:{number}: {module:?} imports {name}"));
                }
            }
        }
    }
    report(&complaints);
}

/// Inside a folder `mod.rs` imports its children, and a child only siblings declared above it.
#[test]
fn siblings_are_imported_in_their_order() {
    let files = sources("src", "rs");
    let mut complaints = Vec::new();
    for parent in files.iter().filter(|source| source.path.ends_with("mod.rs")) {
        let children: Vec<String> = parent
            .code()
            .filter_map(|(_, line)| {
                let line = line.strip_suffix(';')?;
                line.rsplit_once("mod ")
                    .filter(|(start, _)| !start.contains(' ') || start.ends_with(' '))
                    .map(|(_, name)| name.to_owned())
            })
            .collect();
        let folder = parent.path.parent().expect("a module has a folder");
        for (index, child) in children.iter().enumerate() {
            let names = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
            let Some(source) = files.iter().find(|source| names.contains(&source.path)) else {
                continue;
            };
            for (number, line) in source.code() {
                let Some(rest) = line.trim().strip_prefix("use super::") else { continue };
                let first: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_above = children[..index].contains(&first);
                let is_group = rest.starts_with('{');
                let is_checked = !is_group && first != "super" && !source.is_test_module();
                if is_checked && !is_above {
                    let path = source.path.display();
                    complaints
                        .push(format!("{path}:{number}: {first} is not declared above {child}"));
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn low_ranks_are_pure() {
    let mut complaints = Vec::new();
    for source in sources("src", "rs").iter().filter(|source| !source.is_test_module()) {
        let module = source.module();
        let is_pure =
            module.first().and_then(|name| rank(name)).is_some_and(|r| r <= PURE_RANK_MAX);
        for (number, line) in source.code().filter(|_| is_pure) {
            for word in IMPURE.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{}:{number}: {word:?}", source.path.display()));
            }
        }
    }
    report(&complaints);
}

#[test]
fn files_are_short_and_clean() {
    let mut complaints = Vec::new();
    for source in rust_files() {
        let path = source.path.display();
        let mut complain = |what: String| complaints.push(format!("{path}: {what}"));
        let (production, all) = (source.production().lines().count(), source.text.lines().count());
        if PRODUCTION_LINES_MAX < production && !source.is_test_module() {
            complain(format!("{production} lines before its tests"));
        }
        if FILE_LINES_MAX < all {
            complain(format!("{all} lines"));
        }
        if !source.text.starts_with("//! ") {
            complain("does not begin with what it is for".to_owned());
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            if COLUMNS_MAX < line.chars().count() {
                complain(format!("line {number} is longer than {COLUMNS_MAX} columns"));
            }
            if line.ends_with(' ') || line.contains('\t') {
                complain(format!("line {number} has a tab or ends in a space"));
            }
            let unfinished = [concat!("TO", "DO"), concat!("FIX", "ME")];
            if unfinished.iter().any(|word| line.contains(word)) {
                complain(format!("line {number} is unfinished"));
            }
        }
    }
    report(&complaints);
}

/// The only unsafe code of the tree may stand in `json/scan.rs`.
#[test]
fn unsafe_code_has_one_home() {
    let allowing = [concat!("allow(", "unsafe_code"), concat!("expect(", "unsafe_code")];
    let homes: Vec<String> = rust_files()
        .iter()
        .filter(|source| allowing.iter().any(|text| source.text.contains(text)))
        .map(|source| source.path.display().to_string())
        .filter(|path| path != "src/json/scan.rs")
        .collect();
    report(&homes);
}

/// LM-1: every flag is documented in `docs/configuration.md`, and no other.
#[test]
fn every_flag_is_documented() {
    let documented = fs::read_to_string(root().join("docs/configuration.md"))
        .expect("the configuration is documented");
    let flags = |text: &str, before: &str| -> Vec<String> {
        let mut flags: Vec<String> = text
            .split(before)
            .skip(1)
            .map(|rest| {
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
            })
            .collect();
        flags.sort();
        flags.dedup();
        flags
    };
    let mut defined: Vec<String> = ["src/cli/serve.rs", "src/cli/limits.rs"]
        .iter()
        .flat_map(|path| {
            let text = fs::read_to_string(root().join(path)).expect("the flags have a home");
            defined_flags(&text)
        })
        .collect();
    defined.sort();
    assert_eq!(flags(&documented, "| `--"), defined);
}

/// The names of the fields that a `#[arg(long` attribute stands before.
fn defined_flags(text: &str) -> Vec<String> {
    text.split("#[arg(long")
        .skip(1)
        .filter_map(|rest| {
            let field = rest.split("pub ").nth(1)?.split(':').next()?;
            Some(field.replace('_', "-"))
        })
        .collect()
}

/// `docs/requirements.md` has one row an id, and what a row names exists: files of the tree, and
/// tests by their names.
#[test]
fn the_requirements_table_is_true() {
    let table = fs::read_to_string(root().join("docs/requirements.md")).expect("the table exists");
    let all_tests: String = rust_files().into_iter().map(|source| source.text).collect();
    let mut complaints = Vec::new();
    let mut ids = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && line.contains('-')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, code, test, ..] = cells[..] else { continue };
        if !id.chars().next().is_some_and(|c| c.is_ascii_uppercase()) || !id.contains('-') {
            continue;
        }
        ids.push(id.to_owned());
        for path in quoted(code) {
            if !root().join("src").join(path).exists() && !root().join(path).exists() {
                complaints.push(format!("{id}: there is no {path}"));
            }
        }
        for name in quoted(test) {
            let function = name.rsplit("::").next().unwrap_or(name);
            let is_file = root().join(function).exists();
            if !is_file && !all_tests.contains(&format!("fn {function}(")) {
                complaints.push(format!("{id}: there is no test {name}"));
            }
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "one row an id");
    assert!(count > 60, "{count} rows");
    report(&complaints);
}

/// What stands between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The traps of monoio 0.2.4 that no test on the wire can show: a task that wakes itself starves
/// the ring, its `BufWriter` writes past its buffer, its vectored loop sends bytes twice, and its
/// `zero-copy` feature gives buffers back too early.
#[test]
fn traps_of_the_runtime_are_avoided() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest exists");
    let line = manifest.lines().find(|line| line.starts_with("monoio = "));
    let line = line.expect("monoio is a dependency");
    assert!(line.contains("\"=0.2.4\""), "the version whose traps are known is pinned: {line}");
    assert!(line.contains("default-features = false") && !line.contains("zero-copy"), "{line}");
    let mut complaints = Vec::new();
    for source in sources("src", "rs") {
        for (number, line) in source.code() {
            for trap in ["yield_now", "BufWriter", "write_vectored_all", "spawn_blocking"] {
                if line.contains(trap) {
                    complaints.push(format!("{}:{number}: {trap}", source.path.display()));
                }
            }
        }
    }
    report(&complaints);
}
