// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The answer to a request.
struct Answer: Sendable {
    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// Bytes that other answers share.
        case piece(AnswerMemory.Piece)
        /// Written piece by piece until it returns.
        case stream(@Sendable (any StreamWriter) async throws -> Void)
    }

    var status: Int
    var fields: [(name: String, value: String)]
    var body: Body

    init(_ status: Int, _ type: String? = nil, _ body: Body = .none, fields: [(name: String, value: String)] = []) {
        self.status = status
        self.fields = (type.map { [("Content-Type", $0)] } ?? []) + fields
        self.body = body
    }

    static let jsonType = "application/json"

    static func json(_ node: JSONNode, status: Int = 200) -> Answer {
        Answer(status, jsonType, .bytes(Array(node.text().utf8) + [10]))
    }

    static func refused(_ refusal: Refusal) -> Answer {
        var answer = json(["error": json(refusal)], status: refusal.status)
        answer.fields += refusal.fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return answer
    }

    static func json(_ refusal: Refusal) -> JSONNode {
        var error: [(String, JSONNode)] = [
            ("what", .string(refusal.what)), ("place", .string(refusal.place)), ("remedy", .string(refusal.remedy)),
            ("code", .string(refusal.code)),
        ]
        if let reason = refusal.reason { error.append(("reason", .string(reason.rawValue))) }
        if refusal.reason == .noSuchKey { error.append(("option", .string(refusal.place))) }
        if !refusal.logins.isEmpty { error.append(("logins", .array(refusal.logins.map { .string($0) }))) }
        return .object(error)
    }

    /// - Parameter subject: The stage that the path names. Where it does not exist, that is not a fault of the
    ///   request's body.
    static func faults(_ faults: [FrameHostError], subject: String? = nil) -> Answer {
        guard let first = faults.first else {
            return refused(
                Refusal(
                    500, "broken", place: subject ?? "", "the command failed, but no reason was given",
                    "Report this to the author of the stage that the command is for."))
        }
        var members: [(String, JSONNode)] = [("error", json(first))]
        if faults.count > 1 { members.append(("faults", .array(faults.map(json)))) }
        return json(.object(members), status: status(of: first, subject: subject))
    }

    static func json(_ fault: FrameHostError) -> JSONNode {
        var members: [(String, JSONNode)] = [
            ("what", .string(fault.what)), ("place", .string(fault.place.description)),
            ("remedy", .string(fault.remedy)), ("code", .string(fault.code.rawValue)),
        ]
        if !fault.cause.isEmpty { members.append(("cause", .string(fault.cause))) }
        if let reason = fault.reason { members.append(("reason", .string(reason.rawValue))) }
        if let option = fault.option { members.append(("option", .string(option))) }
        return .object(members)
    }

    private static func status(of fault: FrameHostError, subject: String?) -> Int {
        switch fault.code {
        case .invalidConfiguration:
            // The stage in the path, or its command, does not exist.
            subject != nil && fault.place.words == subject
                && (fault.reason == .noSuchStage || fault.reason == .noSuchCommand) ? 404 : 400
        // The request is well formed, but does not fit the present state.
        case .unavailable: 409
        case .unusablePlugin, .invalidMedia: 422
        case .exhausted, .stopped: 503
        case .callFailed, .broken: 500
        }
    }
}

/// Where a long answer is written to.
protocol StreamWriter: Sendable {
    /// Returns when all bytes have left this program.
    ///
    /// - Throws: Where the client has gone, or has taken less than 64 kB of it in ten seconds.
    func write(_ bytes: [UInt8]) async throws
    /// The same for bytes that others share, between a head and a tail. The bytes are not copied.
    func write(_ head: [UInt8], _ piece: AnswerMemory.Piece, _ tail: [UInt8]) async throws
    /// Calls `action` once, when the connection has ended.
    func whenClosed(_ action: @escaping @Sendable () -> Void)
    /// Calls `action` once, when the client has closed its side. It may still read, or have gone: only writing shows
    /// which.
    func whenHalfClosed(_ action: @escaping @Sendable () -> Void)
}

extension StreamWriter {
    func whenHalfClosed(_ action: @escaping @Sendable () -> Void) {}
    func write(_ head: [UInt8], _ piece: AnswerMemory.Piece, _ tail: [UInt8]) async throws {
        try await write(head + piece.bytes + tail)
    }
}
