// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Pictures of stages as files, by the command `snapshot`.
///
/// One thread serves all requests and is made when first needed. It waits for the picture, encodes it and writes it.
/// The chain does not wait. [any thread but a stage's]
final class Snapshots: Sendable {
    /// The most requests that wait. Further ones are refused.
    static let mostWaiting = 16
    /// How long a stage may take until its next picture, seconds.
    static let patience = 1.0

    private struct Work {
        var stage: String
        var body: @Sendable () throws -> CommandAnswer
        var reply: CommandReply

        func refuse(_ error: any Error) { reply(CommandAnswer(stage: stage, error: error)) }
    }

    private struct Queue {
        var hasThread = false
        var isClosed = false
        var work: [Work] = []
    }

    private let chain: Chain
    private let encoder: EncoderLoader
    private let queue = Locked(Queue())

    init(chain: Chain, encoder: EncoderLoader) {
        self.chain = chain
        self.encoder = encoder
    }

    /// - Parameters:
    ///   - command: `path` and what docs/chain-file.md lists besides.
    ///   - reply: Called once, now or later, on any thread.
    func take(_ stage: String, _ command: JSONNode, reply: @escaping CommandReply) {
        do {
            guard let path = command["path"]?.asString, !path.isEmpty else {
                throw FrameHostError(
                    .invalidConfiguration, what: "'path' is \(command["path"] == nil ? "missing" : "empty")",
                    remedy: "Write \"path\": \"picture.jpg\".")
            }
            guard !path.utf8.contains(0) else {
                throw FrameHostError(
                    .invalidConfiguration, what: "'path' must not contain the character U+0000",
                    remedy: "Remove its \\u0000.")
            }
            let form = try PictureForm(command, path: path)
            let target = path.hasPrefix("/") ? path : "\(chain.folder)/\(path)"
            let isReplacing = command["overwrite"]?.asBool ?? false
            let mayBeOriginal = command["original"]?.asBool ?? false
            try start(
                Work(
                    stage: stage,
                    body: { [self] in
                        if !mayBeOriginal, let fault = chain.faultOfOriginals(stage) { throw fault }
                        return try made(stage, form, target, isReplacing: isReplacing)
                    }, reply: reply))
        } catch {
            reply(CommandAnswer(stage: stage, error: error))
        }
    }

    private func made(_ stage: String, _ form: PictureForm, _ path: String, isReplacing: Bool) throws -> CommandAnswer {
        let encoder = try encoder.encoder()
        guard let picture = try chain.picture(of: stage, within: Self.patience) else {
            guard [.starting, .streaming, .draining].contains(chain.currentState) else {
                throw Self.ofEnd(
                    FrameHostError(
                        .unavailable, place: stage, what: "the chain ended before the next picture came",
                        remedy: "Take the snapshot while frames flow."))
            }
            throw Self.ofEnd(
                FrameHostError(
                    .unavailable, place: stage, what: "gave no picture within \(Int(Self.patience)) s",
                    remedy: "Try again when frames flow."))
        }
        let takenAt = chain.clock.unixTime(at: picture.capturedAt)
        let bytes = try encoder.encode(picture, as: form, takenAt: takenAt)
        if isReplacing, let fault = PictureForm.faultOfReplacing(path) { throw fault }
        if let refusal = chain.files.write(path, bytes, as: "snapshot", isReplacing: isReplacing) {
            throw refusal.fault(path, overwriting: "set \"overwrite\": true")
        }
        return CommandAnswer(
            stage: stage, frame: picture.sequenceNumber,
            details: [
                JSONNode.Member(key: "path", value: .string(path)),
                JSONNode.Member(key: "bytes", value: .number(bytes.count)),
                JSONNode.Member(key: "takenAt", value: .string(WallTime.text(takenAt))),
            ], text: "\(stage): frame \(picture.sequenceNumber) is in '\(path)'.")
    }

    /// [control thread] The chain has ended: refuses the waiting requests, and waits for the one that is being
    /// served.
    ///
    /// - Returns: false where that request has not ended in time: its thread may still be working.
    func finish() -> Bool {
        let refused = queue.withLock { queue in
            defer { queue.work = [] }
            queue.isClosed = true
            return queue.work
        }
        for work in refused { work.refuse(Self.ended) }
        return MonotonicTime.wait(milliseconds: 800) { !queue.withLock(\.hasThread) }
    }

    private static let ended = ofEnd(
        FrameHostError(.unavailable, what: "the chain has ended", remedy: "Take snapshots while it runs."))

    private static func ofEnd(_ fault: FrameHostError) -> FrameHostError {
        var fault = fault
        fault.mayBeOfEnd = true
        return fault
    }

    private func start(_ work: Work) throws {
        let needsThread = try queue.withLock { queue in
            guard !queue.isClosed else { throw Self.ended }
            guard queue.work.count < Self.mostWaiting else {
                throw FrameHostError(
                    .exhausted, what: "\(Self.mostWaiting) snapshots are already waiting",
                    remedy: "Try again when they are done.")
            }
            queue.work.append(work)
            defer { queue.hasThread = true }
            return !queue.hasThread
        }
        guard needsThread else { return }
        do {
            try ServiceThread.start(name: "snapshots") { [self] in run() }
        } catch {
            let all = queue.withLock { queue in
                defer { (queue.work, queue.hasThread) = ([], false) }
                return queue.work
            }
            for work in all { work.refuse(error) }
        }
    }

    private func run() {
        while let work = next() {
            do { work.reply(try work.body()) } catch { work.refuse(error) }
        }
    }

    /// The next request; nil ends the thread.
    private func next() -> Work? {
        queue.withLock { queue in
            guard !queue.work.isEmpty else {
                queue.hasThread = false
                return nil
            }
            return queue.work.removeFirst()
        }
    }
}

extension PictureForm {
    /// Why a file is not replaced with a picture, whatever was asked for: it is none. Nil where it is not there, is
    /// empty, or is a picture of a kind that a snapshot writes.
    static func faultOfReplacing(_ path: String) -> FrameHostError? {
        var status = stat()
        // Devices and pipes are written into.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return nil }
        let file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        defer { if file >= 0 { close(file) } }
        var bytes = [UInt8](repeating: 0, count: 8)
        if file >= 0, pread(file, &bytes, bytes.count, 0) >= 3,
            bytes.starts(with: [0xFF, 0xD8, 0xFF]) || bytes == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        {
            return nil
        }
        return FrameHostError(
            .invalidConfiguration, what: "'\(path)' exists and is not a JPEG or PNG picture, so it is kept",
            remedy: "Name another file, or remove this one.")
    }

    /// Reads from a command how the picture is wanted.
    ///
    /// - Parameter path: The file's name. Its ending sets the format.
    /// - Throws: ``FrameHostErrors`` with a fault for each member that is wrong.
    init(_ command: JSONNode, path: String) throws {
        var faults: [FrameHostError] = []
        func fault(_ place: String, _ what: String, _ remedy: String) {
            faults.append(FrameHostError(.invalidConfiguration, place: FaultPlace(place), what: what, remedy: remedy))
        }
        func whole(_ key: String, _ range: ClosedRange<Int>) -> Int? {
            guard let node = command[key] else { return nil }
            if let value = node.asInt, range.contains(value) { return value }
            fault(
                key, "\(node.text()) must be a whole number from \(range.lowerBound) to \(range.upperBound)",
                "Write a number in this range, or leave the key out.")
            return nil
        }
        let ending = path.split(separator: ".").last.map { $0.lowercased() } ?? ""
        self.init(ending == "png" ? .png : .jpeg)
        if !["jpg", "jpeg", "png"].contains(ending) {
            fault("path", "'\(path)' must end in .jpg, .jpeg or .png", "Write the ending of the format that you want.")
        }
        width = whole("width", Self.sides)
        height = whole("height", Self.sides)
        if let node = command["rotate"] {
            if let degrees = node.asInt, Self.rotations.contains(degrees) {
                quarterTurns = degrees / 90
            } else {
                let rule = wordList(Self.rotations.map { "\($0)" }, "or")
                fault(
                    "rotate", "\(node.text()) must be \(rule)",
                    "Write how many degrees to rotate clockwise, or leave the key out.")
            }
        }
        quality = whole("quality", 1...100) ?? quality
        isMirrored = command["mirror"]?.asBool ?? false
        if let text = command["fit"]?.asString {
            if let fit = Fit(rawValue: text) {
                self.fit = fit
            } else {
                fault(
                    "fit", "'\(text)' must be \(quotedList(Fit.allCases.map(\.rawValue), "or"))",
                    "Write one of them, or leave the key out.")
            }
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
    }
}
