// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a client of the WebSocket says: a text message with one JSON object.
enum LiveMessage: Equatable {
    /// Opens a preview, or changes one that is open.
    case open(preview: UInt16, PreviewRequest)
    case close(preview: UInt16)
    case pause(preview: UInt16)
    case resume(preview: UInt16)
    /// The message with this number was drawn, and all before it.
    case shown(preview: UInt16, number: UInt32)
    /// Answered by a `pong` with the same number and the time.
    case ping(Int)
    /// Asks for events from now on, or after this id.
    case events(after: String?)

    private static let limits: JSONReader.Limits = {
        var limits = JSONReader.Limits()
        limits.depth = 3
        limits.bytes = LiveProtocol.mostMessageBytes
        limits.nodes = 64
        limits.faults = 1
        return limits
    }()

    private static let verbs = ["open", "close", "pause", "resume", "shown", "ping", "events"]

    /// - Throws: ``LiveFault`` with the sentence that the client is told.
    init(_ text: [UInt8]) throws {
        let node: JSONNode
        do {
            node = try JSONReader.read(text, file: "message", limits: Self.limits)
        } catch {
            throw LiveFault(
                "message",
                "the message must be JSON with at most \(Self.limits.nodes) values, \(Self.limits.depth) levels deep",
                "Send one small object, such as {\"pause\":1}.")
        }
        guard let members = node.asObject else {
            throw LiveFault(
                "message", "a message must be an object, but is \(node.kindName)", "Send for example {\"ping\":1}.")
        }
        let said = Self.verbs.filter { verb in members.contains { $0.key == verb } }
        guard said.count == 1, let verb = said.first, let value = node[verb] else {
            throw LiveFault(
                "message", "a message must have exactly one of \(Self.verbs.joined(separator: ", "))",
                "Send for example {\"ping\":1}."
            )
        }
        func refuseOthers(than known: [String]) throws {
            guard let odd = members.first(where: { $0.key != verb && !known.contains($0.key) }) else { return }
            throw LiveFault(
                String(odd.key.prefix(64)), "'\(verb)' has no such member",
                Suggestion.nearest(to: odd.key, in: known).map { "Did you mean '\($0)'?" } ?? "Leave it out.")
        }
        switch verb {
        case "open":
            try refuseOthers(than: PreviewRequest.members)
            self = .open(preview: try Self.preview(value, verb), try PreviewRequest(node))
        case "shown":
            try refuseOthers(than: ["number"])
            guard let number = node["number"]?.asInt, let number = UInt32(exactly: number) else {
                throw LiveFault(
                    "number", "'number' must be a whole number from 0 to 4294967295",
                    "Send back the number from the header of the message that was shown.")
            }
            self = .shown(preview: try Self.preview(value, verb), number: number)
        case "ping":
            try refuseOthers(than: [])
            guard let number = value.asInt else {
                throw LiveFault("ping", "'ping' must be a whole number", "Send for example {\"ping\":1}.")
            }
            self = .ping(number)
        case "events":
            try refuseOthers(than: [])
            if let id = value.asString {
                self = .events(after: id)
            } else if value.asBool == true {
                self = .events(after: nil)
            } else {
                throw LiveFault("events", "'events' must be true or the id of an event", "Send {\"events\":true}.")
            }
        default:
            try refuseOthers(than: [])
            let preview = try Self.preview(value, verb)
            self =
                verb == "close"
                ? .close(preview: preview) : verb == "pause" ? .pause(preview: preview) : .resume(preview: preview)
        }
    }

    private static func preview(_ value: JSONNode, _ verb: String) throws -> UInt16 {
        guard let number = value.asInt, let id = UInt16(exactly: number) else {
            throw LiveFault(
                verb, "'\(verb)' must be a whole number from 0 to 65535",
                "Send the number of the preview, which the client chooses with 'open'.")
        }
        return id
    }
}

/// What a preview is to show.
struct PreviewRequest: Equatable {
    var stage: String
    var kind = LiveHead.Kind.jpeg
    var form = PictureForm(.jpeg)
    /// Nanoseconds between two pictures; 0 for every picture.
    var intervalNs: Int64 = 0

    fileprivate static let members = [
        "stage", "kind", "width", "height", "fit", "rotate", "mirror", "quality", "rate",
    ]

    init(stage: String, kind: LiveHead.Kind = .jpeg) { (self.stage, self.kind) = (stage, kind) }

    /// - Throws: ``LiveFault``.
    init(_ node: JSONNode) throws {
        guard let stage = node["stage"]?.asString, !stage.isEmpty, stage.utf8.count <= 256 else {
            throw LiveFault("stage", "'stage' must be the id of a stage", "Send {\"open\":1,\"stage\":\"cam\"}.")
        }
        self.stage = stage
        switch node["kind"]?.asString ?? (node["kind"] == nil ? "jpeg" : "") {
        case "jpeg": kind = .jpeg
        case "h264": kind = .h264
        case "h265": kind = .h265
        default: throw LiveFault("kind", "'kind' must be \"jpeg\", \"h264\" or \"h265\"", "Leave it out for JPEG.")
        }
        if let codec = kind.codec {
            guard let odd = Self.members.dropFirst(2).first(where: { node[$0] != nil }) else { return }
            throw LiveFault(
                odd, "an \(codec) preview shows the encoder's own picture, so it has no '\(odd)'", "Leave it out.")
        }
        func whole(_ key: String, _ range: ClosedRange<Int>) throws -> Int? {
            guard let value = node[key] else { return nil }
            guard let number = value.asInt, range.contains(number) else {
                throw LiveFault(
                    key, "'\(key)' must be a whole number from \(range.lowerBound) to \(range.upperBound)",
                    "Write such a number, or leave it out.")
            }
            return number
        }
        form.width = try whole("width", LiveProtocol.sides)
        form.height = try whole("height", LiveProtocol.sides)
        if let value = node["rotate"] {
            guard let degrees = value.asInt, PictureForm.rotations.contains(degrees) else {
                throw LiveFault("rotate", "'rotate' must be 0, 90, 180 or 270", "Use one of these, or leave it out.")
            }
            form.quarterTurns = degrees / 90
        }
        form.quality = try whole("quality", 1...100) ?? 80
        if let value = node["mirror"] {
            guard let isMirrored = value.asBool else {
                throw LiveFault("mirror", "'mirror' must be true or false", "Write true or false, or leave it out.")
            }
            form.isMirrored = isMirrored
        }
        if let value = node["fit"] {
            guard let fit = value.asString.flatMap({ PictureForm.Fit(rawValue: $0) }) else {
                throw LiveFault("fit", "'fit' must be \"contain\" or \"fill\"", "Use one of these, or leave it out.")
            }
            form.fit = fit
        }
        if let value = node["rate"] {
            guard let rate = value.asDouble, PictureQuery.rates.contains(rate) else {
                throw LiveFault("rate", "'rate' must be a number from 0.1 to 60", "Leave it out for every picture.")
            }
            intervalNs = Int64(1e9 / rate)
        }
    }
}

/// A message that is wrong; the client is told and the socket closed.
struct LiveFault: Error, Equatable {
    var place: String
    var what: String
    var remedy: String

    init(_ place: String, _ what: String, _ remedy: String) {
        (self.place, self.what, self.remedy) = (place, what, remedy)
    }

    var json: JSONNode {
        [
            "what": .string(what), "place": .string(place), "remedy": .string(remedy),
            "code": "invalid-configuration",
        ]
    }
}
