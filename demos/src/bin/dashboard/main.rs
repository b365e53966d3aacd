//! A pool at work, in the terminal: workers, queue and counters, under a load that keys change.
//!
//! ```text
//! cargo run --release -p demos --bin dashboard
//! ```
//!
//! It shows
//! - [`ThreadPool::stats`](elastipool::ThreadPool::stats), read ten times per second,
//! - that sizes and keep-alive change while the pool works,
//! - what [`blocking`](elastipool::blocking) regions do: their workers do not count against
//!   `max_size`.

mod app;
mod view;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::app::App;

/// The time between two frames.
const INTERVAL: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let ended = match ratatui::try_init() {
        Ok(terminal) => run(terminal),
        Err(error) => Err(error),
    };
    // Also after an error: nothing else would show it.
    ratatui::restore();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dashboard: this needs a terminal: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut terminal: DefaultTerminal) -> io::Result<()> {
    let mut app = App::new();
    loop {
        app.look();
        terminal.draw(|frame| view::draw(frame, &app.snapshot))?;
        // Keys are handled at once, but a frame is drawn, and the counts are read, at regular
        // times.
        let next = Instant::now() + INTERVAL;
        while event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key)
                    if key.kind != KeyEventKind::Release && app.press(key.code, key.modifiers) =>
                {
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}
