// SPDX-License-Identifier: Apache-2.0

/// What a client asks: request line, header fields, body (RFC 2326, 6).
struct RTSPRequest: Sendable, Equatable {
    /// As in the request line; methods are case-sensitive (RFC 2326, 6.1).
    var method: String
    /// The second word of the request line, not parsed.
    var target: String
    /// `RTSP/1.0`.
    var version: String
    var headers: HeaderFields
    var body: [UInt8]

    init(
        _ method: String, _ target: String, version: String = "RTSP/1.0", headers: HeaderFields = HeaderFields(),
        body: [UInt8] = []
    ) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.body = body
    }

    /// The bytes on the wire. The caller sets `Content-Length`.
    var bytes: [UInt8] { wire("\(method) \(target) \(version)", headers, body) }
}

/// What the server answers.
struct RTSPResponse: Sendable, Equatable {
    var status: RTSPStatus
    var headers: HeaderFields
    var body: [UInt8]
    /// Its text is the body.
    var description: SessionDescription?
    /// `HTTP/1.1` for a client that speaks HTTP.
    var version = "RTSP/1.0"

    init(_ status: RTSPStatus, headers: HeaderFields = HeaderFields(), body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The bytes on the wire, with `Content-Length` where there is a body.
    var bytes: [UInt8] {
        var headers = headers
        let body = description.map { Array($0.text.utf8) } ?? body
        if !body.isEmpty { headers.append("Content-Length", String(body.count)) }
        return wire("\(version) \(status.rawValue) \(status.reason)", headers, body)
    }
}

private func wire(_ firstLine: String, _ headers: HeaderFields, _ body: [UInt8]) -> [UInt8] {
    var text = firstLine + "\r\n"
    for field in headers.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8) + body
}
