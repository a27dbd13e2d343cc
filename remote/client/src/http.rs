//! Sends requests over http and https with the crate `ureq`.

use everett_remote::http::{Answer, Client, Fields, Request, Rules, Status};
use ureq::{Agent, Proxy, RequestBuilder};

/// Value of the header `User-Agent`.
const USER_AGENT: &str = "everett";

/// A client of the crate `ureq`, with its open connections.
struct UreqClient(Agent);

/// Returns a client that follows these rules.
pub(super) fn client(rules: Rules) -> impl Client {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(rules.https_only)
        .max_redirects(rules.redirections_max)
        .proxy(Proxy::try_from_env())
        .timeout_connect(Some(rules.answer_within))
        .timeout_recv_response(Some(rules.answer_within))
        .timeout_per_read(Some(rules.read_within))
        .timeout_global(rules.all_within)
        .user_agent(USER_AGENT)
        .build();
    UreqClient(config.into())
}

/// True if requests to this address go through a proxy.
pub(super) fn is_proxied(address: &str) -> bool {
    let uri = address.parse::<ureq::http::Uri>();
    Proxy::try_from_env().is_some_and(|proxy| uri.is_ok_and(|uri| !proxy.is_no_proxy(&uri)))
}

fn with_headers<B>(request: RequestBuilder<B>, headers: &[(&str, &str)]) -> RequestBuilder<B> {
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

impl Client for UreqClient {
    fn send(&self, request: &Request<'_>) -> Result<Answer, String> {
        let Request { address, headers, fields, bytes_max } = *request;
        let response = match fields {
            Fields::None => with_headers(self.0.get(address), headers).call(),
            Fields::Query(query) => {
                let get = with_headers(self.0.get(address), headers);
                query.iter().fold(get, |get, (name, value)| get.query(name, value)).call()
            }
            Fields::Form(form) => with_headers(self.0.post(address), headers).send_form(form.iter().copied()),
        };
        let response = response.map_err(|error| error.to_string())?;
        let status = response.status();
        let status = Status {
            code: status.as_u16(),
            words: status.canonical_reason().unwrap_or("<unknown status code>"),
        };
        let headers = response.headers().iter();
        let headers = headers
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let headers = headers.collect();
        let body = response.into_body().into_with_config().limit(bytes_max).reader();
        Ok(Answer { status, headers, body: Box::new(body) })
    }
}
