//! URLs, by the URL standard.

use url::{Url, quirks};

/// A URL and its parts, each on a line: none has a line feed in it.
pub(super) fn parse(input: &str, base: Option<&str>) -> Option<String> {
    let url = match base {
        Some(base) => Url::parse(base).ok()?.join(input),
        None => Url::parse(input),
    };
    url.ok().map(|url| parts(&url))
}

/// The same URL with another value for a part, where the standard allows it; otherwise as it is.
pub(super) fn set(href: &str, part: &str, value: &str) -> Option<String> {
    let mut url = Url::parse(href).ok()?;
    // What a setter refuses stays as it is, as in the standard.
    let _ = match part {
        "protocol" => quirks::set_protocol(&mut url, value),
        "username" => quirks::set_username(&mut url, value),
        "password" => quirks::set_password(&mut url, value),
        "host" => quirks::set_host(&mut url, value),
        "hostname" => quirks::set_hostname(&mut url, value),
        "port" => quirks::set_port(&mut url, value),
        "pathname" => {
            quirks::set_pathname(&mut url, value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, value);
            Ok(())
        }
        _ => Err(()),
    };
    Some(parts(&url))
}

fn parts(url: &Url) -> String {
    // The library knows a path's `^` by an older edition of the standard, which left it as it is.
    let mut newer = None;
    if !url.cannot_be_a_base() && url.path().contains('^') {
        let mut url = url.clone();
        url.set_path(&url.path().replace('^', "%5E"));
        newer = Some(url);
    }
    let url = newer.as_ref().unwrap_or(url);
    [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ]
    .join("\n")
}

/// The names and values of a query, in turn.
pub(super) fn parse_form(query: &str) -> Vec<String> {
    url::form_urlencoded::parse(query.as_bytes())
        .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
        .collect()
}

/// A name or value as it stands in a query.
pub(super) fn encode_form(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
