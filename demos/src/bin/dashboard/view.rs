//! What a frame looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline};

use crate::app::Snapshot;

const RUNNING: Color = Color::Blue;
const BLOCKED: Color = Color::Magenta;
const IDLE: Color = Color::DarkGray;
const QUEUED: Color = Color::Yellow;
const FREE: &str = "·";
const TAKEN: &str = "█";

pub(crate) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot) {
    let [now, charts, counters, keys] = Layout::vertical([
        Constraint::Length(5),
        Constraint::Min(8),
        Constraint::Length(4),
        Constraint::Length(5),
    ])
    .areas(frame.area());
    let [workers, queue] =
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(charts);
    draw_now(frame, now, snapshot);
    draw_history(frame, workers, "workers", RUNNING, &snapshot.workers);
    draw_history(frame, queue, "queue", QUEUED, &snapshot.queued);
    draw_counters(frame, counters, snapshot);
    draw_keys(frame, keys, snapshot);
}

/// The workers, one character for each, and those that the pool may still start.
fn draw_now(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let stats = &snapshot.stats;
    let running = stats.active.saturating_sub(stats.blocked);
    let idle = stats.workers.saturating_sub(stats.active);
    let free = snapshot.max_size.saturating_sub(running + idle);
    let width = usize::from(area.width);
    let bar = |count: usize, text: &str, color| Span::styled(text.repeat(count.min(width)), color);
    let lines = vec![
        Line::from(vec![
            bar(running, TAKEN, RUNNING),
            bar(stats.blocked, TAKEN, BLOCKED),
            bar(idle, TAKEN, IDLE),
            bar(free, FREE, IDLE),
        ]),
        Line::from(vec![
            Span::styled(format!("{running} running  "), RUNNING),
            Span::styled(format!("{} in blocking regions  ", stats.blocked), BLOCKED),
            Span::styled(format!("{idle} idle  "), IDLE),
            Span::styled(format!("{} queued", stats.queued), QUEUED),
        ]),
        Line::from(format!(
            "core_size {}   max_size {}   keep_alive {:?}",
            snapshot.core_size, snapshot.max_size, snapshot.keep_alive
        )),
    ];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" elastipool ")), area);
}

/// As many of the last frames as there are columns, the last one at the right.
fn draw_history(frame: &mut Frame<'_>, area: Rect, name: &str, color: Color, history: &[u64]) {
    let columns = usize::from(area.width.saturating_sub(2));
    let shown = &history[history.len().saturating_sub(columns)..];
    let highest = shown.iter().copied().max().unwrap_or_default();
    // Empty columns at the left, until there are enough frames.
    let mut data = vec![0; columns - shown.len()];
    data.extend_from_slice(shown);
    let block = Block::bordered().title(format!(" {name}, up to {highest} "));
    let chart = Sparkline::default().data(&data).max(highest.max(1)).style(Style::new().fg(color));
    frame.render_widget(chart.block(block), area);
}

fn draw_counters(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let stats = &snapshot.stats;
    let lines = vec![
        Line::from(format!(
            "tasks:    {} completed   {} rejected by the full queue",
            stats.completed, stats.rejected
        )),
        Line::from(format!(
            "threads:  {} started   {} ended   {} at most at a time",
            stats.threads_started, stats.threads_retired, stats.peak_workers
        )),
    ];
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" since the start ")),
        area,
    );
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let state = match &snapshot.message {
        Some(message) => Line::from(message.as_str()).red(),
        None => Line::from(format!(
            "{} tasks per second, {} % of them in a blocking region{}",
            snapshot.rate,
            snapshot.blocking,
            if snapshot.is_paused { " (paused)" } else { "" }
        )),
    };
    let lines = vec![
        state,
        Line::from("up/down: load   left/right: blocking share   space: pause   q: quit"),
        Line::from("C/c: core_size   M/m: max_size   K/k: keep_alive (capital: more)"),
    ];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" load ")), area);
}
