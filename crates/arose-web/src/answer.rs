//! Error pages.

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use crate::html::{Notice, render};
use crate::nav::Nav;

/// A rejected request, with a message for people.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    pub(crate) detail: String,
}

impl Refusal {
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            title: "Page not found",
            detail: detail.into(),
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            title: "Invalid request",
            detail: detail.into(),
        }
    }

    /// Something in the directory cannot be read: the error and all its causes.
    pub(crate) fn failed(error: &dyn std::error::Error) -> Self {
        let mut detail = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            detail = format!("{detail}: {cause}");
            source = cause.source();
        }
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            title: "The directory cannot be read",
            detail,
        }
    }

    /// The same for machines.
    pub(crate) fn into_json(self) -> Response {
        (self.status, Json(json!({ "error": self.detail }))).into_response()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let page = render(&Notice {
            nav: Nav::bare(),
            title: self.title,
            detail: &self.detail,
        });
        (self.status, Html(page)).into_response()
    }
}

impl From<arose_search::Error> for Refusal {
    fn from(error: arose_search::Error) -> Self {
        match error {
            arose_search::Error::TooFar { .. } => Self::bad_request(error.to_string()),
            error => Self::failed(&error),
        }
    }
}

impl From<arose_dedup::results::Error> for Refusal {
    fn from(error: arose_dedup::results::Error) -> Self {
        Self::failed(&error)
    }
}

impl From<arose_dedup::evaluate::Error> for Refusal {
    fn from(error: arose_dedup::evaluate::Error) -> Self {
        Self::failed(&error)
    }
}

pub(crate) async fn not_found(uri: Uri) -> Response {
    let refusal = Refusal::not_found("There is no page at this URL.");
    match uri.path().starts_with("/api/") {
        true => refusal.into_json(),
        false => refusal.into_response(),
    }
}
