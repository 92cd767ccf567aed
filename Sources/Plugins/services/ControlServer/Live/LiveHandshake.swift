// SPDX-License-Identifier: Apache-2.0

/// Tells whether the first bytes of a connection are a request for the WebSocket, without an HTTP pipeline.
///
/// NIO's upgrade handler closes the connection without an answer where an upgrade is refused (swift-nio issue 2632),
/// and only looks at the first request too. Here everything but a correct handshake goes on to HTTP unchanged, which
/// answers it with a status. RFC 6455 §4.2.1.
enum LiveHandshake {
    enum Look: Equatable {
        /// The bytes may become a handshake.
        case more
        case http
        /// A handshake with the length of its head. The gate has not checked it yet.
        case live(Request)
    }

    struct Request: Equatable {
        var fields: [Field]
        var key: String
        var byteCount: Int

        struct Field: Equatable {
            var name: String
            var value: String
        }

        var head: RequestHead {
            RequestHead(
                method: "GET", target: LiveProtocol.path, host: fields.first { $0.name == "host" }?.value,
                fields: fields.map { ($0.name, $0.value) })
        }
    }

    private static let mostBytes = 16 << 10
    private static let mostFields = 100
    private static let line = Array("GET \(LiveProtocol.path) HTTP/1.1\r\n".utf8)
    private static let end: [UInt8] = [13, 10, 13, 10]
    /// Fields that may appear only once: another parser might take the other one.
    private static let single = [
        "host", "origin", "upgrade", "connection", "authorization", "sec-websocket-key", "sec-websocket-version",
    ]

    /// - Complexity: O(bytes) for each call; a head comes in one or two packets.
    static func look(_ bytes: some Collection<UInt8>) -> Look {
        let beginning = bytes.prefix(line.count)
        guard line.starts(with: beginning) else { return .http }
        guard beginning.count == line.count else { return .more }
        let all = Array(bytes.prefix(mostBytes))
        guard let end = all.indices.first(where: { all[$0...].starts(with: Self.end) }) else {
            return all.count < mostBytes ? .more : .http
        }
        guard let fields = fields(all[line.count..<end]) else { return .http }
        func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
        guard !single.contains(where: { name in fields.filter { $0.name == name }.count > 1 }),
            value("upgrade")?.lowercased() == "websocket", value("sec-websocket-version") == "13",
            let key = value("sec-websocket-key"), isKey(key), let connection = value("connection"),
            connection.lowercased().split(whereSeparator: { $0 == "," || $0 == " " }).contains("upgrade"),
            value("content-length").map({ $0 == "0" }) ?? true, value("transfer-encoding") == nil
        else { return .http }
        return .live(Request(fields: fields, key: key, byteCount: end + Self.end.count))
    }

    /// The fields, by the strictest reading of RFC 9112 §5; nil for anything else, which is left to HTTP's own parser.
    private static func fields(_ bytes: ArraySlice<UInt8>) -> [Request.Field]? {
        var fields: [Request.Field] = []
        var rest = bytes
        while !rest.isEmpty {
            guard fields.count < mostFields else { return nil }
            let end = rest.firstIndex(of: 13) ?? rest.endIndex
            let line = rest[..<end]
            if end < rest.endIndex {
                guard rest.index(after: end) < rest.endIndex, rest[end + 1] == 10 else { return nil }
                rest = rest[(end + 2)...]
                // An end of line with nothing behind it would be the end of the head.
                guard !rest.isEmpty else { return nil }
            } else {
                rest = []
            }
            guard let colon = line.firstIndex(of: 58), colon > line.startIndex,
                line[..<colon].allSatisfy(isNameByte), line.allSatisfy({ $0 == 9 || (32...126).contains($0) })
            else { return nil }
            var value = line[(colon + 1)...]
            while let first = value.first, first == 32 || first == 9 { value = value.dropFirst() }
            while let last = value.last, last == 32 || last == 9 { value = value.dropLast() }
            fields.append(
                Request.Field(
                    name: String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                    value: String(decoding: value, as: UTF8.self)))
        }
        return fields
    }

    /// RFC 9110 §5.6.2, letters, digits and the marks that fields have.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45 || byte == 95
    }

    /// Sixteen bytes in base64.
    private static func isKey(_ key: String) -> Bool {
        let bytes = Array(key.utf8)
        guard bytes.count == 24, bytes[22] == 61, bytes[23] == 61 else { return false }
        return bytes[..<22].allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 43 || $0 == 47
        }
    }

    /// Why a request that reached HTTP did not become a WebSocket.
    static func refusal(of head: RequestHead) -> Refusal {
        guard head["upgrade"]?.lowercased() == "websocket" else {
            return upgradeRequired("this address needs a WebSocket")
        }
        if head["sec-websocket-version"] != "13" {
            return upgradeRequired("the WebSocket's version must be 13")
        }
        return Refusal(
            400, "invalid-configuration", place: "Upgrade", "the WebSocket handshake must follow RFC 6455",
            "Send it as the first request of a connection, with each field once and a key of 16 bytes.")
    }

    private static func upgradeRequired(_ what: String) -> Refusal {
        var refusal = Refusal(
            426, "upgrade-required", place: "Upgrade", what,
            "Connect with a WebSocket client, version 13; a proxy must pass on the fields Upgrade and Connection. docs/control.md describes the messages."
        )
        refusal.fields = ["Upgrade": "websocket", "Sec-WebSocket-Version": "13"]
        return refusal
    }
}
