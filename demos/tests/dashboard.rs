//! The program `dashboard`: its frames on a terminal in memory, and its keys.

#[path = "../../tests/common/mod.rs"]
mod common;

#[path = "../src/bin/dashboard/app.rs"]
mod app;
#[path = "../src/bin/dashboard/view.rs"]
mod view;

use std::time::Duration;

use app::{App, Snapshot};
use common::wait_until;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::style::Color;

fn drawn(width: u16, height: u16, snapshot: &Snapshot) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is in memory");
    terminal.draw(|frame| view::draw(frame, snapshot)).expect("it is in memory");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
    (0..buffer.area.height).map(row).collect()
}

fn text(buffer: &Buffer) -> String {
    lines(buffer).join("\n")
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot {
        core_size: 2,
        max_size: 8,
        keep_alive: Duration::from_secs(2),
        rate: 100,
        blocking: 50,
        running: vec![0, 4, 8],
        queued: vec![0, 0, 7],
        ..Snapshot::default()
    };
    let stats = &mut snapshot.stats;
    (stats.workers, stats.active, stats.blocked, stats.queued) = (9, 7, 4, 7);
    (stats.completed, stats.rejected) = (1234, 5);
    (stats.threads_started, stats.threads_retired, stats.peak_workers) = (11, 2, 10);
    snapshot
}

#[test]
fn each_worker_is_a_character_in_the_colour_of_its_state() {
    let buffer = drawn(100, 24, &snapshot());
    let count = |symbol: &str, color| {
        (0..100)
            .filter(|x| buffer[(*x, 1)].symbol() == symbol && buffer[(*x, 1)].fg == color)
            .count()
    };
    assert_eq!(count("█", Color::Blue), 3, "running");
    assert_eq!(count("█", Color::Magenta), 4, "in blocking regions");
    assert_eq!(count("█", Color::DarkGray), 2, "idle");
    assert_eq!(count("·", Color::DarkGray), 3, "max_size less those that count against it");
}

#[test]
fn a_frame_says_all_numbers_and_keys_in_60_columns() {
    let drawn = text(&drawn(60, 24, &snapshot()));
    for expected in [
        "3 running  4 in blocking regions  2 idle  7 queued",
        "core_size 2   max_size 8   keep_alive 2s",
        "max_size limits running workers, not blocked or idle ones",
        "running workers, up to 8; the line is max_size, 8",
        "queue, up to 7",
        "1234 completed   5 rejected by the full queue",
        "11 started   2 ended   10 at most at a time",
        "100 tasks per second, 50 % of them in a blocking region",
        "up/down: load   left/right: blocking share",
        "C/c: core_size   M/m: max_size   K/k: keep_alive",
        "capital: more   space: pause   q: quit",
    ] {
        assert!(drawn.contains(expected), "{expected:?} is not in\n{drawn}");
    }
}

#[test]
fn a_line_shows_max_size_among_the_running_workers() {
    let mut snapshot = snapshot();
    // The chart is as high as the highest count: twice max_size.
    (snapshot.max_size, snapshot.running) = (4, vec![1, 8]);
    let lines = lines(&drawn(40, 30, &snapshot));
    let title = |title: &str| lines.iter().position(|line| line.contains(title)).expect("a title");
    let chart = &lines[title("running workers, up") + 1..title("queue, up to") - 1];
    let at = |line: &str| line.contains("───") && line.ends_with("█│");
    let found: Vec<_> = (0..chart.len()).filter(|row| at(&chart[*row])).collect();
    assert_eq!(found, [chart.len() - chart.len().div_ceil(2)], "{chart:#?}");
}

#[test]
fn the_last_frame_is_at_the_right() {
    let lines = lines(&drawn(40, 24, &snapshot()));
    // The last line of the workers' chart: the columns of 4 and 8 running workers are full there.
    let bottom = lines.iter().position(|line| line.contains("queue, up to")).expect("a title") - 2;
    assert!(lines[bottom].ends_with(" ██│"), "{:?}", lines[bottom]);
}

#[test]
fn a_terminal_of_any_size_is_drawn() {
    let mut snapshot = snapshot();
    snapshot.running = (0..1000).collect();
    snapshot.stats.workers = 5000;
    for (width, height) in [(0, 0), (1, 1), (2, 30), (200, 2), (10, 10), (300, 100)] {
        drawn(width, height, &snapshot);
    }
}

fn press(app: &mut App, key: KeyCode) -> bool {
    let quits = app.press(key, KeyModifiers::NONE);
    app.look();
    quits
}

#[test]
fn keys_change_load_and_sizes() {
    let mut app = App::new();
    for key in
        [KeyCode::Up, KeyCode::Right, KeyCode::Char('C'), KeyCode::Char('M'), KeyCode::Char('K')]
    {
        assert!(!press(&mut app, key));
    }
    let Snapshot { rate, blocking, core_size, max_size, keep_alive, .. } = app.snapshot;
    assert_eq!((rate, blocking, core_size, max_size), (200, 60, 3, 9));
    assert_eq!(keep_alive, Duration::from_secs(3));
    for key in
        [KeyCode::Down, KeyCode::Left, KeyCode::Char('c'), KeyCode::Char('m'), KeyCode::Char('k')]
    {
        assert!(!press(&mut app, key));
    }
    let Snapshot { rate, blocking, core_size, max_size, keep_alive, .. } = app.snapshot;
    assert_eq!((rate, blocking, core_size, max_size), (100, 50, 2, 8));
    assert_eq!(keep_alive, Duration::from_secs(2));
    assert!(press(&mut app, KeyCode::Char('q')) && press(&mut app, KeyCode::Esc));
    assert!(app.press(KeyCode::Char('c'), KeyModifiers::CONTROL));
}

#[test]
fn a_size_that_cannot_be_is_a_message_until_the_next_key() {
    let mut app = App::new();
    for _ in 0..6 {
        press(&mut app, KeyCode::Char('m'));
    }
    assert_eq!((app.pool.core_size(), app.pool.max_size()), (2, 2));
    press(&mut app, KeyCode::Char('m'));
    assert_eq!(app.pool.max_size(), 2);
    let message = "max_size is 1; it must be at least core_size, which is 2";
    assert!(text(&drawn(100, 24, &app.snapshot)).contains(message));
    press(&mut app, KeyCode::Up);
    assert!(!text(&drawn(100, 24, &app.snapshot)).contains(message));
}

#[test]
fn the_load_runs_on_the_pool_until_it_is_paused() {
    let mut app = App::new();
    let pool = app.pool.clone();
    wait_until("tasks are done", || pool.stats().completed >= 5);
    press(&mut app, KeyCode::Char(' '));
    assert!(text(&drawn(100, 24, &app.snapshot)).contains("(paused)"));
    // What was about to be submitted may still come.
    wait_until("no tasks come", || {
        pool.join();
        let before = pool.stats().accepted();
        std::thread::sleep(Duration::from_millis(50));
        pool.stats().accepted() == before
    });
    drop(app);
    assert!(pool.is_closed());
}
