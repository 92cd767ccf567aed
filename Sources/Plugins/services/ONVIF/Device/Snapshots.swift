// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Takes pictures of what encoders take, on one thread of its own.
///
/// A picture of a stage whose pictures are originals is never asked for, and is thrown away where the stage has become
/// one meanwhile (docs/design/047-originals.md).
final class Snapshots: Sendable {
    static let mostWaiting = 32
    /// How long a client waits, nanoseconds.
    static let patience: Int64 = 5_000_000_000
    /// All who ask within this time get one picture, nanoseconds.
    static let shares: Int64 = 200_000_000
    /// A stage that did not answer is asked again after this time.
    private static let askAgain: Int64 = 250_000_000

    enum Outcome: Sendable, Equatable {
        case picture([UInt8])
        /// None came in time.
        case none
        /// The stage's pictures may not be shown.
        case hidden
        /// Too many wait.
        case crowded
    }

    private struct Waiting {
        var stage: String
        var since: Int64
        var give: @Sendable (Outcome) -> Void
    }

    private struct Kept {
        var bytes: [UInt8]
        var at: Int64
    }

    private struct State {
        var waiting: [Waiting] = []
        /// The newest picture of each stage. Pictures that are too old to be shared go.
        var kept: [String: Kept] = [:]
        var isClosed = false
    }

    private let control: any RunControl
    private let inbox = PictureInbox()
    private let state = Locked(State())

    init(_ control: any RunControl) { self.control = control }

    /// [any thread] The next picture that a stage gives, or one that is not old.
    ///
    /// - Parameter give: Called once, now or later, on any thread.
    func ask(_ stage: String, give: @escaping @Sendable (Outcome) -> Void) {
        guard !control.showsOriginals(stage) else { return give(.hidden) }
        let now = MonotonicTime.now()
        let outcome = state.withLock { state -> Outcome? in
            if state.isClosed { return Outcome.none }
            if let kept = state.kept[stage], now - kept.at < Self.shares { return .picture(kept.bytes) }
            guard state.waiting.count < Self.mostWaiting else { return .crowded }
            state.waiting.append(Waiting(stage: stage, since: now, give: give))
            return nil
        }
        if let outcome { give(outcome) } else { inbox.wake() }
    }

    /// [any thread] Ends ``run()``.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0.give(.none) }
        inbox.wake()
    }

    /// [service thread] Serves until ``close()``.
    func run() {
        /// When a stage was asked last.
        var asked: [String: Int64] = [:]
        while !state.withLock({ $0.isClosed }) {
            let now = MonotonicTime.now()
            let (late, stages) = state.withLock { state in
                let late = state.waiting.filter { now - $0.since >= Self.patience }
                state.waiting.removeAll { now - $0.since >= Self.patience }
                state.kept = state.kept.filter { now - $0.value.at < Self.shares }
                return (late, Set(state.waiting.map(\.stage)))
            }
            late.forEach { $0.give(.none) }
            for stage in asked.keys where !stages.contains(stage) {
                asked[stage] = nil
                inbox.withdraw(stage)
            }
            for stage in stages where asked[stage].map({ now - $0 >= Self.askAgain }) ?? true {
                asked[stage] = now
                do { try control.askPicture(of: stage, for: inbox) } catch { finish(stage, .none) }
            }
            guard let (stage, picture) = inbox.take(within: stages.isEmpty ? 1 : 0.05) else { continue }
            guard let picture else { continue }
            asked[stage] = nil
            develop(stage, picture)
        }
    }

    private func develop(_ stage: String, _ picture: StagePicture) {
        guard !control.showsOriginals(stage) else { return finish(stage, .hidden) }
        do {
            let bytes = try control.encode(picture, as: PictureForm(.jpeg))
            state.withLock { $0.kept[stage] = Kept(bytes: bytes, at: MonotonicTime.now()) }
            finish(stage, .picture(bytes))
        } catch { finish(stage, .none) }
    }

    private func finish(_ stage: String, _ outcome: Outcome) {
        let waiting = state.withLock { state in
            let waiting = state.waiting.filter { $0.stage == stage }
            state.waiting.removeAll { $0.stage == stage }
            return waiting
        }
        waiting.forEach { $0.give(outcome) }
    }
}
