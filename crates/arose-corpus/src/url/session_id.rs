//! Session IDs and tracking parameters: parts of URLs that identify a visitor.
//!
//! The names are those of [`is_known_name`]. Other names are learned from page contents
//! ([`arose::dust`]), where the known names need less evidence.

use arose::dust::is_known_name;

/// Removes session IDs from the path in `out` after `start`: parameters after a semicolon, and
/// segments that are only a session ID, `/(S(…))`.
pub(super) fn drop_from_path(out: &mut Vec<u8>, start: usize) {
    let path = out.split_off(start);
    for (index, segment) in path.split(|&byte| byte == b'/').enumerate() {
        if is_session(segment) {
            continue;
        }
        if index > 0 {
            out.push(b'/');
        }
        push_segment(segment, out);
    }
}

/// Removes session IDs and tracking parameters from the query in `out` after `start`.
pub(super) fn drop_from_query(out: &mut Vec<u8>, start: usize) {
    let query = out.split_off(start);
    let kept = query
        .split(|&byte| byte == b'&')
        .filter(|parameter| !is_session_id(parameter));
    for (index, parameter) in kept.enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(parameter);
    }
}

/// Appends a segment without session IDs, unless a dot segment would remain.
fn push_segment(segment: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    for (index, part) in segment.split(|&byte| byte == b';').enumerate() {
        if index == 0 {
            out.extend_from_slice(part);
        } else if !is_session_id(part) {
            out.push(b';');
            out.extend_from_slice(part);
        }
    }
    if matches!(&out[start..], b"." | b"..") {
        out.truncate(start);
        out.extend_from_slice(segment);
    }
}

/// The session ID of a server that works without cookies: `(S(…))`.
fn is_session(segment: &[u8]) -> bool {
    segment.starts_with(b"(S(") && segment.ends_with(b"))")
}

/// Whether `name=value` is a session ID or tracking parameter. Without a value it may be anything.
fn is_session_id(parameter: &[u8]) -> bool {
    let Some(equals) = memchr::memchr(b'=', parameter) else {
        return false;
    };
    std::str::from_utf8(&parameter[..equals]).is_ok_and(is_known_name)
}
