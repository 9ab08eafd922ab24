//! A codec for `flexwire vectors check`, made of the crate kafka-protocol: it reads a message and
//! writes it again. The crate has no JSON form, so it is not asked to encode (`--decode-only`).

use std::io::{self, BufRead, Write};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader, RequestKind, ResponseHeader, ResponseKind};
use kafka_protocol::protocol::{Decodable, Encodable};
use serde_json::{json, Value};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(&question))?;
        out.flush()?;
    }
    Ok(())
}

fn answer(question: &Value) -> Value {
    if question["do"] != "decode" {
        return json!({"unsupported": "only messages are read"});
    }
    let version = question["version"].as_i64().unwrap_or(-1) as i16;
    let data = Bytes::from(hex::decode(question["hex"].as_str().unwrap_or("")).unwrap());
    let again = match question["type"].as_str() {
        Some("header") if question["message"] == "RequestHeader" => {
            again::<RequestHeader>(data, version)
        }
        Some("header") => again::<ResponseHeader>(data, version),
        Some("request") | Some("response") => match api(question, version) {
            Some(key) if question["type"] == "request" => request(key, data, version),
            Some(key) => response(key, data, version),
            None => return json!({"unsupported": "the crate has no such version"}),
        },
        _ => return json!({"unsupported": "only requests, responses and headers are read"}),
    };
    match again {
        Ok(bytes) => json!({"hex": hex::encode(bytes)}),
        Err(error) => json!({"refused": error.to_string()}),
    }
}

fn api(question: &Value, version: i16) -> Option<ApiKey> {
    let key = ApiKey::try_from(question["apiKey"].as_i64()? as i16).ok()?;
    let known = key.valid_versions();
    (known.min <= version && version <= known.max).then_some(key)
}

fn again<M: Decodable + Encodable>(mut data: Bytes, version: i16) -> anyhow::Result<BytesMut> {
    let mut out = BytesMut::new();
    M::decode(&mut data, version)?.encode(&mut out, version)?;
    Ok(out)
}

fn request(key: ApiKey, mut data: Bytes, version: i16) -> anyhow::Result<BytesMut> {
    let mut out = BytesMut::new();
    RequestKind::decode(key, &mut data, version)?.encode(&mut out, version)?;
    Ok(out)
}

fn response(key: ApiKey, mut data: Bytes, version: i16) -> anyhow::Result<BytesMut> {
    let mut out = BytesMut::new();
    ResponseKind::decode(key, &mut data, version)?.encode(&mut out, version)?;
    Ok(out)
}
