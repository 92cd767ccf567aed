// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// The first line and the header fields of a message.
enum MessageHead {
    case request(RTSPRequest, bodyBytes: Int)
    case response(bodyBytes: Int)
    case fault(RTSPStatus, String)

    /// - Parameter bytes: The head, including its empty line.
    static func parse(_ bytes: ArraySlice<UInt8>, limits: WireReader.Limits) -> MessageHead {
        guard !bytes.contains(0) else { return .fault(.badRequest, "the header must not contain a zero byte") }
        var lines = bytes.split(separator: 10, omittingEmptySubsequences: false).map {
            $0.last == 13 ? $0.dropLast() : $0
        }
        while lines.last?.isEmpty == true { lines.removeLast() }
        guard let first = lines.first else { return .fault(.badRequest, "the message is empty") }
        guard first.count <= limits.requestLineBytes else {
            return .fault(.urlTooLong, "the request line is longer than \(limits.requestLineBytes) bytes")
        }
        guard lines.count <= limits.fieldCount + 1 else {
            return .fault(.badRequest, "there are more than \(limits.fieldCount) header fields")
        }
        var headers = HeaderFields()
        for line in lines.dropFirst() {
            guard add(line, to: &headers) else { return .fault(.badRequest, "a header line has no name") }
        }
        let words = first.split(whereSeparator: { $0 == 32 || $0 == 9 }).map { String(decoding: $0, as: UTF8.self) }
        // The length of a tunnel's POST is not its real one, and what follows an HTTP request is not RTSP.
        if words.count == 3, words[2].hasPrefix("HTTP/"), words[0].utf8.allSatisfy(isTokenByte) {
            return .request(RTSPRequest(words[0], words[1], version: words[2], headers: headers), bodyBytes: 0)
        }
        guard let bodyBytes = bodyBytes(headers) else {
            return .fault(.badRequest, "there must be one Content-Length, and it must be a number")
        }
        guard bodyBytes <= limits.bodyBytes else {
            return .fault(.requestTooLarge, "the body is larger than \(limits.bodyBytes) bytes")
        }
        if words.count >= 2, words[0].hasPrefix("RTSP/"), ASCII.number(words[1], atMost: 999) != nil {
            return .response(bodyBytes: bodyBytes)
        }
        guard words.count == 3, words[0].utf8.allSatisfy(isTokenByte) else {
            return .fault(.badRequest, "the first line must be a request line")
        }
        return .request(RTSPRequest(words[0], words[1], version: words[2], headers: headers), bodyBytes: bodyBytes)
    }

    /// Adds one line; false for a line that is neither a field nor a continuation.
    private static func add(_ line: ArraySlice<UInt8>, to headers: inout HeaderFields) -> Bool {
        if line.first == 32 || line.first == 9 {
            return headers.extendLast(with: ASCII.trimmed(String(decoding: line, as: UTF8.self)))
        }
        guard let colon = line.firstIndex(of: 58) else { return false }
        let name = ASCII.trimmed(String(decoding: line[..<colon], as: UTF8.self))
        guard !name.isEmpty, name.utf8.allSatisfy(isTokenByte) else { return false }
        headers.append(name, ASCII.trimmed(String(decoding: line[(colon + 1)...], as: UTF8.self)))
        return true
    }

    /// `Content-Length`, 0 without one; nil where it is not a number, or where two differ.
    private static func bodyBytes(_ headers: HeaderFields) -> Int? {
        let values = headers.all("Content-Length")
        guard let first = values.first else { return 0 }
        guard values.allSatisfy({ $0 == first }) else { return nil }
        return ASCII.number(first, atMost: 1 << 40).map { Int($0) }
    }

    /// A byte of a token (RFC 2326, 15.1).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        byte > 32 && byte < 127 && !"()<>@,;:\\\"/[]?={}".utf8.contains(byte)
    }
}
