// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// The parameters of pictures.
enum PictureQuery {
    static let rates = 0.1...60.0

    static func parameters(isStream: Bool) -> [QueryParameter] {
        let sides = PictureForm.sides
        var parameters = [
            QueryParameter(
                name: "width",
                help: "In pixels. Default: from `height` and the picture's shape, or else the picture's width.",
                kind: .integer(sides)),
            QueryParameter(
                name: "height",
                help: "In pixels. Default: from `width` and the picture's shape, or else the picture's height.",
                kind: .integer(sides)),
            QueryParameter(
                name: "fit",
                help:
                    "How a picture of another shape gets into width and height: `fill` crops it, `contain` (the default) shows all of it on grey.",
                kind: .words(PictureForm.Fit.allCases.map(\.rawValue))),
            QueryParameter(
                name: "rotate", help: "Degrees to rotate the picture clockwise.", kind: .oneOf(PictureForm.rotations)),
            QueryParameter(name: "mirror", help: "Mirrors the picture left to right.", kind: .flag),
            QueryParameter(
                name: "quality", help: "JPEG quality. Default: 90 for one picture, 80 for a stream.",
                kind: .integer(1...100)),
        ]
        if isStream {
            parameters += [
                QueryParameter(name: "rate", help: "Pictures per second. Default: 10.", kind: .number(rates)),
                QueryParameter(
                    name: "count", help: "Ends after this many pictures.", kind: .integer(1...1_000_000_000)),
            ]
        } else {
            parameters.insert(
                QueryParameter(
                    name: "format", help: "Format of the file. Default: `jpeg`.",
                    kind: .words(PictureForm.Kind.allCases.map(\.rawValue))), at: 0)
            parameters.append(
                QueryParameter(
                    name: "preview",
                    help: "Mirrors the picture as previews do: as the camera's options `facing` and `mirror` say.",
                    kind: .flag))
        }
        return parameters
    }

    static func form(_ query: QueryValues, quality: Int) -> PictureForm {
        var form = PictureForm(query.word("format").flatMap { PictureForm.Kind(rawValue: $0) } ?? .jpeg)
        form.width = query.int("width")
        form.height = query.int("height")
        form.fit = query.word("fit").flatMap { PictureForm.Fit(rawValue: $0) } ?? .contain
        form.quarterTurns = (query.int("rotate") ?? 0) / 90
        form.isMirrored = query.flag("mirror")
        form.quality = query.int("quality") ?? quality
        return form
    }
}

/// Pictures one after the other (multipart/x-mixed-replace), as browsers, players and home automation read them.
enum PictureStream {
    static let type = "multipart/x-mixed-replace; boundary=framehost"
    static let mostViewers = 64
    static let usualRate = 10.0
    /// After this many nanoseconds without a picture, a stream checks its stage and client.
    static let patienceNs: Int64 = 1_000_000_000
}

extension ControlAPI {
    /// A snapshot.
    func picture(_ call: Call) async throws -> Answer {
        let id = call.path["id"] ?? ""
        let form = PictureQuery.form(call.query, quality: 90)
        switch await pictures.next(
            of: id, as: form, isPreview: call.query.flag("preview"), patience: 1_000_000_000,
            permit: permit(call.caller))
        {
        case .none: return Answer(204)
        case .crowded: throw AnswerMemory.full("there is no room for the picture")
        case .failed(let error): throw refusal(of: error, id)
        case .refused(let refusal): throw refusal
        case .shot(let shot):
            return Answer(200, "image/\(form.kind.rawValue)", .piece(shot.piece), fields: fields(of: shot))
        }
    }

    /// MJPEG. The next picture is asked for when the last one has left, so that a slow viewer gets fewer pictures, each
    /// the newest.
    func pictureStream(_ call: Call) async throws -> Answer {
        let id = call.path["id"] ?? ""
        guard control.status.stages.contains(where: { $0.id == id }) else {
            throw noStage(id)
        }
        guard let place = place(\.pictures, most: PictureStream.mostViewers) else {
            throw Self.tooMany("\(PictureStream.mostViewers) viewers already watch streams of pictures")
        }
        let form = PictureQuery.form(call.query, quality: 80)
        let interval = Int64(1e9 / (call.query.double("rate") ?? PictureStream.usualRate))
        let left = call.query.int("count") ?? Int.max
        let permit = permit(call.caller)
        // Errors are answered before the stream begins. Where no picture came in time, the stream begins without one.
        let first =
            call.head.method == "HEAD"
            ? .none
            : await pictures.next(of: id, as: form, isPreview: true, patience: PictureStream.patienceNs, permit: permit)
        if case .failed(let error) = first { throw refusal(of: error, id) }
        if case .refused(let refusal) = first { throw refusal }
        return Answer(
            200, PictureStream.type,
            .stream { writer in
                defer { place.leave() }
                let hasGone = Locked(false)
                writer.whenClosed { hasGone.withLock { $0 = true } }
                let isSilent = Locked(false)
                writer.whenHalfClosed { isSilent.withLock { $0 = true } }
                try await stream(id, form, interval, left, first, permit, to: writer) { isWaiting in
                    hasGone.withLock { $0 } || events.isClosed || isWaiting && isSilent.withLock { $0 }
                }
            })
    }

    private func stream(
        _ id: String, _ form: PictureForm, _ interval: Int64, _ count: Int, _ first: PictureRequests.Outcome,
        _ permit: @escaping Permit, to writer: any StreamWriter, unless isOver: @Sendable (_ isWaiting: Bool) -> Bool
    ) async throws {
        var left = count
        var due = MonotonicTime.now()
        var next = first
        while left > 0, !isOver(false) {
            switch next {
            case .none:
                // Nothing is being written, so nothing shows whether a client that has closed its side is still there.
                if isOver(true) { return }
                due = MonotonicTime.now()
            // This viewer has lost a picture, as all have.
            case .crowded: due = MonotonicTime.now() + interval
            // The stage has gone, its pictures cannot be encoded, or this viewer may not see them any more: the stream
            // ends.
            case .failed, .refused: return
            case .shot(let shot):
                try await writer.write(Self.head(of: shot, fields(of: shot)), shot.piece, Array("\r\n".utf8))
                left -= 1
                // Keeps the interval. A late picture is not made up for.
                due = max(due + interval, MonotonicTime.now() - interval)
            }
            guard left > 0 else { break }
            next = await pictures.next(
                of: id, as: form, isPreview: true, after: due - MonotonicTime.now(), patience: PictureStream.patienceNs,
                permit: permit)
        }
        if left == 0 { try await writer.write(Array("--framehost--\r\n".utf8)) }
    }

    private static func head(of shot: PictureRequests.Shot, _ fields: [(name: String, value: String)]) -> [UInt8] {
        var head = "--framehost\r\nContent-Type: image/jpeg\r\nContent-Length: \(shot.piece.count)\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        return Array("\(head)\r\n".utf8)
    }

    private func fields(of shot: PictureRequests.Shot) -> [(name: String, value: String)] {
        [
            ("Framehost-Frame", "\(shot.sequenceNumber)"),
            ("Framehost-Captured", WallTime.text(control.clock.unixTime(at: shot.capturedAt))),
        ]
    }

    /// The refusal for an error of a stage or of the encoder.
    private func refusal(of error: FrameHostError, _ id: String) -> any Error {
        if error.reason == .noSuchStage { return noStage(id) }
        return error
    }
}
