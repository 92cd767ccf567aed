// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Stills
import Synchronization

/// Reads the picture that a live option names, on a thread of its own, which exists while it reads.
///
/// Of several that were asked for meanwhile only the newest is read.
final class PictureReader: Sendable {
    /// A picture, and the picture as it is to be shown.
    struct Reading: Sendable {
        var path: String
        var still: StillPicture
        var scaled: ScaledPicture
    }
    struct Refusal: Error {
        var path: String
        var fault: FrameHostError
    }
    private struct Request: Sendable {
        var number: Int
        var path: String
        var scale: @Sendable (StillPicture) -> ScaledPicture
    }
    private struct State {
        /// How often something was asked for or forgotten.
        var number = 0
        /// What the thread has not begun to read.
        var request: Request?
        var isRunning = false
        var answer: Result<Reading, Refusal>?
    }

    private let state = Locked(State())
    private let hasAnswer = Atomic<Bool>(false)

    /// [stage thread] Reads a file; what was asked for before is forgotten.
    ///
    /// - Parameter scale: Brings the picture into its size.
    /// - Throws: ``FrameHostError`` `.exhausted` when there is no thread.
    func read(_ path: String, scale: @escaping @Sendable (StillPicture) -> ScaledPicture) throws {
        let startsThread = state.withLock { state in
            state.number += 1
            state.request = Request(number: state.number, path: path, scale: scale)
            state.answer = nil
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard startsThread else { return }
        do {
            try ServiceThread.start(name: "overlay") { self.run() }
        } catch {
            state.withLock { $0 = State() }
            throw error
        }
    }

    /// [stage thread] Forgets what was asked for.
    func forget() {
        state.withLock { state in
            state.number += 1
            state.request = nil
            state.answer = nil
        }
    }

    /// [stage thread] The answer to the last request, once. Looks at one flag where there is none.
    func take() -> Result<Reading, Refusal>? {
        guard hasAnswer.load(ordering: .relaxed) else { return nil }
        return state.withLock { state in
            hasAnswer.store(false, ordering: .relaxed)
            defer { state.answer = nil }
            return state.answer
        }
    }

    private func run() {
        while let request = next() {
            let answer: Result<Reading, Refusal>
            do {
                let still = try StillPicture(request.path, option: "path")
                answer = .success(Reading(path: request.path, still: still, scaled: request.scale(still)))
            } catch {
                answer = .failure(Refusal(path: request.path, fault: FrameHostError.wrap(error)))
            }
            state.withLock { state in
                // Otherwise something else was asked for meanwhile, or nothing any more.
                guard state.number == request.number else { return }
                state.answer = answer
                hasAnswer.store(true, ordering: .relaxed)
            }
        }
    }

    private func next() -> Request? {
        state.withLock { state in
            defer { state.request = nil }
            if state.request == nil { state.isRunning = false }
            return state.request
        }
    }
}
