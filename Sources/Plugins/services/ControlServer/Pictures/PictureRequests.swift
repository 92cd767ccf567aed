// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Asks stages for pictures and encodes them, on one thread of its own, so that neither an event loop nor the chain
/// waits for an encoder. Each distinct form of a frame is encoded once for all viewers.
final class PictureRequests: Sendable {
    /// A file's bytes, and which picture they show.
    struct Shot: Sendable {
        var piece: AnswerMemory.Piece
        var sequenceNumber: UInt64
        /// Chain clock, nanoseconds.
        var capturedAt: Int64
    }

    enum Outcome: Sendable {
        case shot(Shot)
        /// There was no picture in time.
        case none
        /// There was a picture, but no room for it: clients that do not read hold too much.
        case crowded
        case failed(FrameHostError)
        /// Who asks may not see it.
        case refused(Refusal)
    }

    private struct Request {
        var stage: String
        var form: PictureForm
        /// Whether the picture is mirrored where its camera says that previews are.
        var isPreview: Bool
        /// Only pictures that were copied at this time of the system clock or later are given.
        var notBefore: Int64
        var deadline: Int64
        var permit: Permit
        var give: @Sendable (Outcome) -> Void
    }

    private struct State {
        var requests: [Request] = []
        var isClosed = false
    }

    /// Requests that wait at once.
    static let mostRequests = LiveProtocol.mostSockets * LiveProtocol.mostPreviews + 1024
    /// A stage that did not answer is asked again after this time, since it may have been replaced.
    private static let askAgainNs: Int64 = 250_000_000
    /// A picture that is wanted for a later time may come this much earlier.
    private static let slackNs: Int64 = 4_000_000

    /// How long a picture waits for the room of clients that were just disconnected, microseconds.
    private static let (waitsForRoom, pauseUs): (Int, UInt32) = (20, 5000)

    /// What pictures on their way to clients may use.
    let memory: AnswerMemory
    private let control: any RunControl
    private let inbox = PictureInbox()
    private let state = Locked(State())

    init(_ control: any RunControl, _ memory: AnswerMemory = AnswerMemory()) {
        (self.control, self.memory) = (control, memory)
    }

    /// [any thread] The next picture that a stage gives after this call.
    ///
    /// - Parameters:
    ///   - isPreview: Whether to mirror the picture once more where the camera says that previews are mirrored.
    ///   - delay: No picture is wanted before this time from now, nanoseconds.
    ///   - patience: How long to wait after that, nanoseconds.
    ///   - permit: Asked now, and again when there is a picture.
    func next(
        of stage: String, as form: PictureForm, isPreview: Bool = false, after delay: Int64 = 0, patience: Int64,
        permit: @escaping Permit
    ) async -> Outcome {
        let once = Once<Outcome>()
        return await withCheckedContinuation { continuation in
            once.wait(continuation)
            ask(of: stage, as: form, isPreview: isPreview, after: delay, patience: patience, permit: permit) {
                once.give($0)
            }
        }
    }

    /// [any thread] The same, where `give` is called once, now or later, on any thread. It must not wait.
    func ask(
        of stage: String, as form: PictureForm, isPreview: Bool, after delay: Int64, patience: Int64,
        permit: @escaping Permit, give: @escaping @Sendable (Outcome) -> Void
    ) {
        if let refusal = permit(stage, control.showsOriginals(stage)) { return give(.refused(refusal)) }
        let start = MonotonicTime.now() + max(delay, 0)
        let request = Request(
            stage: stage, form: form, isPreview: isPreview, notBefore: delay > 0 ? start - Self.slackNs : start,
            deadline: start + patience, permit: permit, give: give)
        let isTaken = state.withLock { state in
            guard !state.isClosed, state.requests.count < Self.mostRequests else { return false }
            state.requests.append(request)
            return true
        }
        guard !isTaken else { return inbox.wake() }
        give(
            state.withLock { $0.isClosed }
                ? .none
                : .failed(
                    FrameHostError(
                        .exhausted,
                        what:
                            "\(Self.mostRequests) requests for pictures are already waiting, which is the limit for all stages together",
                        remedy: "Request fewer pictures at once, or try again later.")))
    }

    /// Requests that wait at this moment.
    var waitingCount: Int { state.withLock { $0.requests.count } }

    /// [any thread] Ends ``run()``. Waiting requests get nothing.
    func close() {
        let requests = state.withLock { state in
            defer { state.requests.removeAll() }
            state.isClosed = true
            return state.requests
        }
        for request in requests { request.give(.none) }
        inbox.wake()
    }

    // MARK: The thread

    /// [service thread] Serves requests until ``close()``.
    func run() {
        /// System clock of the last unanswered question, by stage.
        var asked: [String: Int64] = [:]
        while !state.withLock({ $0.isClosed }) {
            let now = MonotonicTime.now()
            expire(now)
            var pause = ask(&asked, now)
            pause = min(max(pause, 0), 1_000_000_000)
            guard let (stage, picture) = inbox.take(within: Double(pause) / 1e9) else { continue }
            asked[stage] = nil
            // The stage's format has just changed, or the stage has gone: it is asked again a little later.
            guard let picture else {
                asked[stage] = MonotonicTime.now() - Self.askAgainNs + 10_000_000
                continue
            }
            develop(stage, picture)
        }
    }

    private func expire(_ now: Int64) {
        let late = state.withLock { state in
            let late = state.requests.filter { $0.deadline <= now }
            if !late.isEmpty { state.requests.removeAll { $0.deadline <= now } }
            return late
        }
        for request in late { request.give(.none) }
    }

    /// Asks the stages whose pictures are due.
    ///
    /// - Returns: Nanoseconds until there is something to do again, if no picture comes.
    private func ask(_ asked: inout [String: Int64], _ now: Int64) -> Int64 {
        var stages: Set<String> = []
        var next = now + 1_000_000_000
        state.withLock { state in
            for request in state.requests {
                if request.notBefore <= now {
                    stages.insert(request.stage)
                } else {
                    next = min(next, request.notBefore)
                }
                next = min(next, request.deadline)
            }
        }
        for stage in asked.keys where !stages.contains(stage) {
            asked[stage] = nil
            // Its requests have ended without a picture, which a paused stage may give much later.
            inbox.withdraw(stage)
        }
        for stage in stages {
            if let last = asked[stage], now - last < Self.askAgainNs {
                next = min(next, last + Self.askAgainNs)
                continue
            }
            do {
                try control.askPicture(of: stage, for: inbox)
                asked[stage] = now
                next = min(next, now + Self.askAgainNs)
            } catch {
                fail(stage, FrameHostError.wrap(error))
            }
        }
        return next - now
    }

    private func fail(_ stage: String, _ error: FrameHostError) {
        for request in take({ $0.stage == stage }) { request.give(.failed(error)) }
    }

    private func take(_ isMeant: (Request) -> Bool) -> [Request] {
        state.withLock { state in
            let taken = state.requests.filter(isMeant)
            if !taken.isEmpty { state.requests.removeAll(where: isMeant) }
            return taken
        }
    }

    /// Encodes a picture once for each form that is due. A request that came while the picture waited here for another
    /// encoding gets a newer picture.
    private func develop(_ stage: String, _ picture: StagePicture) {
        var requests = take { $0.stage == stage && $0.notBefore <= picture.copiedAt }
        // A change may have made the stage bare since it was asked.
        let isOriginal = control.showsOriginals(stage)
        requests.removeAll { request in
            guard let refusal = request.permit(stage, isOriginal) else { return false }
            request.give(.refused(refusal))
            return true
        }
        for index in requests.indices where requests[index].isPreview && picture.isMirroredInPreviews {
            requests[index].form.isMirrored.toggle()
        }
        while let form = requests.first?.form {
            let outcome: Outcome
            do {
                let piece = piece(try control.encode(picture, as: form))
                outcome =
                    piece.map {
                        .shot(Shot(piece: $0, sequenceNumber: picture.sequenceNumber, capturedAt: picture.capturedAt))
                    } ?? .crowded
            } catch {
                outcome = .failed(FrameHostError.wrap(error))
            }
            for request in requests where request.form == form { request.give(outcome) }
            requests.removeAll { $0.form == form }
        }
    }

    private func piece(_ bytes: [UInt8]) -> AnswerMemory.Piece? {
        for _ in 0..<Self.waitsForRoom {
            if let piece = memory.piece(bytes) { return piece }
            usleep(Self.pauseUs)
        }
        return memory.piece(bytes)
    }
}
