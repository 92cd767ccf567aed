// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Gives the access units of stages to viewers, on one thread of its own. Each stage is watched once, and each unit
/// prepared once, for any number of viewers. A stage without a viewer is not watched.
final class UnitFanOut: Sendable {
    struct Unit: Sendable {
        var header: StageUnit.Header
        /// With start codes.
        var piece: AnswerMemory.Piece
        var followsGap: Bool
    }

    enum News: Sendable {
        case unit(Unit)
        /// The last delivery.
        case failed(FrameHostError)
        /// The viewer may not see them, or not any more. Also the last one.
        case refused(Refusal)
    }

    typealias Give = @Sendable (News) -> Void

    private struct Viewer {
        let codec: Codec
        let permit: Permit
        var give: Give
        /// Whether it has got nothing yet: it may start with the kept group.
        var isNew = true
    }

    private struct Stage {
        var viewers: [Int: Viewer] = [:]
        var format: EncodedFormat?
        /// Units from the last keyframe on; empty where that is not known or too long ago.
        var group: [Unit] = []
        var groupBytes = 0
        /// System clock of the last unit, or of the last attempt to watch.
        var heardAt: Int64 = 0
        var requestedAt: Int64 = .min
        var makesKeyframes = true
        var wantsKeyframe = false
        /// The last unit was lost here.
        var hasLost = false
        /// Whether its units were originals when that was asked last.
        var isOriginal = false
        /// Chain clock: units from before may still be originals. Nil when a keyframe has come since.
        var coveredSince: Int64?
    }

    private struct State {
        var stages: [String: Stage] = [:]
        var nextViewer = 1
        var isClosed = false
    }

    /// Units that wait for the fan-out's thread.
    static let inboxBytes = 8 << 20
    /// A larger group is not kept for viewers that join.
    private static let (mostUnits, mostBytes) = (300, 16 << 20)
    /// A viewer that joins within this many units after a keyframe starts there: decoding them takes less time than
    /// waiting for a new keyframe.
    private static let soon = 30
    /// The least time between two requests for a keyframe, for all viewers of a stage together.
    private static let requestNs: Int64 = 1_000_000_000
    /// A stage that gave nothing for this long may have been replaced, and is watched again.
    private static let silenceNs: Int64 = 1_000_000_000

    private let memory: AnswerMemory
    private let control: any RunControl
    private let inbox: UnitInbox
    private let state = Locked(State())

    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(_ control: any RunControl, _ memory: AnswerMemory = AnswerMemory()) throws {
        (self.control, self.memory) = (control, memory)
        inbox = try UnitInbox(byteCount: Self.inboxBytes)
    }

    /// [any thread] Gives the stage's units from its next keyframe on, or from one shortly before.
    ///
    /// - Parameters:
    ///   - codec: What the viewer can show; it is told where the stage gives something else.
    ///   - permit: Asked anew with each unit.
    ///   - give: Called on the fan-out's thread; must not wait.
    /// - Returns: Names the viewer in ``unwatch(_:viewer:)``.
    func watch(_ stage: String, _ codec: Codec, permit: @escaping Permit, give: @escaping Give) -> Int {
        defer { inbox.wake() }
        return state.withLock { state in
            let number = state.nextViewer
            state.nextViewer += 1
            if !state.isClosed {
                state.stages[stage, default: Stage()].viewers[number] = Viewer(codec: codec, permit: permit, give: give)
            }
            return number
        }
    }

    /// [any thread]
    func unwatch(_ stage: String, viewer: Int) {
        let isLast = state.withLock { state in
            state.stages[stage]?.viewers[viewer] = nil
            guard state.stages[stage]?.viewers.isEmpty == true else { return false }
            state.stages[stage] = nil
            return true
        }
        // A viewer that joins at this very moment gets nothing for a second. Then the stage is watched again.
        if isLast { control.unwatchUnits(of: stage, for: inbox) }
    }

    /// [any thread] Notes that a viewer needs a keyframe to continue.
    func wantKeyframe(_ stage: String) { state.withLock { $0.stages[stage]?.wantsKeyframe = true } }

    /// [any thread] Ends ``run()``.
    func close() {
        let stages = state.withLock { state in
            defer { state.stages = [:] }
            state.isClosed = true
            return Array(state.stages.keys)
        }
        for stage in stages { control.unwatchUnits(of: stage, for: inbox) }
        inbox.wake()
    }

    // MARK: The thread

    /// [service thread] Gives units to viewers until ``close()``.
    func run() {
        while !state.withLock({ $0.isClosed }) {
            let now = MonotonicTime.now()
            watchWhatIsDue(now)
            refuse()
            for stage in state.withLock({ Array($0.stages.keys) }) { look(stage) }
            welcome(now)
            request(now)
            let isIdle = state.withLock { $0.stages.isEmpty }
            switch inbox.take(within: isIdle ? 1 : 0.1) {
            case .unit(let stage, let unit): take(unit, stage)
            // Not at once: the replacement may not be there yet.
            case .ended(let stage):
                state.withLock { state in
                    state.stages[stage]?.heardAt = MonotonicTime.now() - Self.silenceNs + 250_000_000
                    state.stages[stage]?.group = []
                }
            case nil: break
            }
        }
    }

    private func watchWhatIsDue(_ now: Int64) {
        let due = state.withLock { state in
            state.stages.filter { now - $0.value.heardAt >= Self.silenceNs }.map(\.key)
        }
        for stage in due {
            do {
                let format = try control.watchUnits(of: stage, for: inbox)
                let isWatched = state.withLock { state in
                    guard state.stages[stage] != nil else { return false }
                    state.stages[stage]?.heardAt = now
                    if state.stages[stage]?.format?.codec != format.codec { state.stages[stage]?.group = [] }
                    state.stages[stage]?.format = format
                    return true
                }
                // The last viewer left meanwhile.
                if !isWatched { control.unwatchUnits(of: stage, for: inbox) }
            } catch {
                let fault = FrameHostError.wrap(error)
                let viewers = state.withLock { $0.stages.removeValue(forKey: stage)?.viewers.values.map(\.give) ?? [] }
                control.unwatchUnits(of: stage, for: inbox)
                for give in viewers { give(.failed(fault)) }
            }
        }
    }

    /// Tells viewers whose stage gives another codec than they can show, which it may do since it was replaced.
    private func refuse() {
        let refused = state.withLock { state in
            var refused: [(Give, FrameHostError)] = []
            for (name, stage) in state.stages {
                guard let given = stage.format?.codec else { continue }
                for (number, viewer) in stage.viewers where viewer.codec != given {
                    refused.append((viewer.give, Self.fault(name, wanted: viewer.codec, given: given)))
                    // The stage stays until the viewer has left.
                    state.stages[name]?.viewers[number] = nil
                }
            }
            return refused
        }
        for (give, fault) in refused { give(.failed(fault)) }
    }

    /// Asks whether a stage gives originals, and tells the viewers who may not see them.
    private func look(_ name: String) {
        let isOriginal = control.showsOriginals(name)
        let now = control.clock.now()
        let refused = state.withLock { state -> [(Give, Refusal)] in
            guard var stage = state.stages[name] else { return [] }
            if stage.isOriginal, !isOriginal {
                // What waits in the inbox, and what is kept, is from before.
                stage.coveredSince = now
                (stage.group, stage.groupBytes, stage.wantsKeyframe) = ([], 0, true)
            }
            stage.isOriginal = isOriginal
            var refused: [(Give, Refusal)] = []
            for (number, viewer) in stage.viewers {
                guard let refusal = viewer.permit(name, isOriginal) else { continue }
                refused.append((viewer.give, refusal))
                // The stage stays until the viewer has left.
                stage.viewers[number] = nil
            }
            state.stages[name] = stage
            return refused
        }
        for (give, refusal) in refused { give(.refused(refusal)) }
    }

    private static func fault(_ stage: String, wanted: Codec, given: Codec) -> FrameHostError {
        let isKnown = [LiveHead.Kind.h264, .h265].contains { $0.codec == given }
        return FrameHostError(
            .unavailable, place: stage, what: "an \(wanted) preview needs \(wanted), but this stage gives \(given)",
            remedy: isKnown
                ? "Open the preview with \"kind\": \"\(given.rawValue)\"."
                : "Preview a stage that gives H.264 or H.265, or a stage with raw pictures as JPEG.")
    }

    /// Gives new viewers the kept group to start with, or else asks for a keyframe.
    private func welcome(_ now: Int64) {
        let beginnings = state.withLock { state in
            var beginnings: [([Give], [Unit])] = []
            for name in state.stages.keys {
                guard let stage = state.stages[name], stage.viewers.contains(where: { $0.value.isNew }) else {
                    continue
                }
                let hasBeginning = !stage.group.isEmpty && (stage.group.count <= Self.soon || !stage.makesKeyframes)
                if hasBeginning {
                    beginnings.append((stage.viewers.values.filter(\.isNew).map(\.give), stage.group))
                } else {
                    state.stages[name]?.wantsKeyframe = true
                }
                for number in stage.viewers.keys { state.stages[name]?.viewers[number]?.isNew = false }
            }
            return beginnings
        }
        for (viewers, group) in beginnings {
            for give in viewers {
                for (index, unit) in group.enumerated() {
                    var unit = unit
                    if index == 0 { unit.followsGap = true }
                    give(.unit(unit))
                }
            }
        }
    }

    private func request(_ now: Int64) {
        let due = state.withLock { state in
            state.stages.filter { _, stage in
                stage.wantsKeyframe && stage.format != nil
                    && (stage.requestedAt == .min || now - stage.requestedAt >= Self.requestNs)
            }.map(\.key)
        }
        for stage in due {
            let makesKeyframes = control.requestKeyframe(of: stage)
            state.withLock { state in
                state.stages[stage]?.requestedAt = now
                state.stages[stage]?.makesKeyframes = makesKeyframes
                // The stage makes no keyframes on request, so the viewers wait for the next one.
                if !makesKeyframes { state.stages[stage]?.wantsKeyframe = false }
            }
        }
    }

    private func take(_ unit: StageUnit, _ name: String) {
        look(name)
        guard let format = state.withLock({ $0.stages[name]?.format }) else { return }
        let isFromBefore = state.withLock { state in
            guard let since = state.stages[name]?.coveredSince else { return false }
            guard unit.header.isKeyframe, unit.header.capturedAt >= since else { return true }
            state.stages[name]?.coveredSince = nil
            state.stages[name]?.hasLost = true
            return false
        }
        guard !isFromBefore else { return }
        let isAfterLoss = state.withLock { $0.stages[name]?.hasLost } ?? false
        // The next unit follows a gap where this one is lost.
        guard let bytes = try? ViewerUnits.annexB(unit, format), let piece = piece(bytes) else {
            return state.withLock { state in
                state.stages[name]?.group = []
                state.stages[name]?.hasLost = true
            }
        }
        let followsGap = unit.followsGap || isAfterLoss
        let ready = Unit(
            header: unit.header, piece: piece,
            followsGap: followsGap || unit.header.isDiscontinuity && unit.header.isKeyframe)
        let viewers = state.withLock { state -> [Give] in
            guard var stage = state.stages[name] else { return [] }
            stage.heardAt = MonotonicTime.now()
            stage.hasLost = false
            if unit.header.isKeyframe {
                (stage.group, stage.groupBytes, stage.wantsKeyframe) = ([], 0, false)
            }
            let goesOn = unit.header.isKeyframe || !stage.group.isEmpty && !followsGap
            if goesOn, stage.group.count < Self.mostUnits, stage.groupBytes + piece.count <= Self.mostBytes {
                stage.group.append(ready)
                stage.groupBytes += piece.count
            } else {
                (stage.group, stage.groupBytes) = ([], 0)
            }
            state.stages[name] = stage
            return stage.viewers.values.filter { !$0.isNew }.map(\.give)
        }
        for give in viewers { give(.unit(ready)) }
    }

    /// Where there is no room, what is kept for viewers that join goes first.
    private func piece(_ bytes: [UInt8]) -> AnswerMemory.Piece? {
        if let piece = memory.piece(bytes) { return piece }
        state.withLock { state in
            for name in state.stages.keys {
                state.stages[name]?.group = []
                state.stages[name]?.groupBytes = 0
            }
        }
        return memory.piece(bytes)
    }
}
