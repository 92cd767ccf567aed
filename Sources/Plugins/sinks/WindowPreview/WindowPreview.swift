// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Shows the pictures in a window of the desktop, by SDL.
///
/// docs/design/025-windows.md. The stage's thread puts the newest picture into the window's slot, and the window thread
/// draws it when it can. The chain never waits for the screen.
final class WindowPreview: Sink {
    static let info = StageInfo(
        id: "window-preview", summary: "Shows the pictures in a window of the desktop.",
        input: .video(.i420, .nv12, .bgra, .yuyv), hold: 2, longestCall: MediaTime(seconds: 12),
        commands: [CommandInfo("open", "Opens the window again after it was closed.")],
        events: [
            EventDeclaration(
                "key", "A key was pressed in the window.",
                [.string("key", "The key's name in lower case: s, f5, left, space.")]),
            EventDeclaration("window-closed", "The window was closed. The chain keeps running."),
        ])

    var options: WindowOptions
    private let context: StageContext
    private var format: VideoFormat?
    private var slot: WindowSlot?
    private var view = WindowView()
    private let failure = Locked<FrameHostError?>(nil)
    /// When the window thread was told of the picture that it has not taken yet, nanoseconds of the chain clock.
    private var untakenSince: Int64 = 0
    private var isFrozen = false

    /// [control thread] Opens nothing.
    init(options: WindowOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws {
        guard let video = input.video else {
            throw FrameHostError(.broken, what: "window-preview was handed access units")
        }
        format = video
    }

    /// [control thread] Opens the window; ten seconds at most.
    func start() throws { try open { try WindowThread.shared.open($0) } }

    private func open(_ show: (WindowSlot) throws -> Void) throws {
        guard let format else {
            throw FrameHostError(.broken, what: "window-preview was started before it knew its pictures")
        }
        view = options.view
        let (context, failure) = (context, failure)
        let title = options.title ?? context.stageID
        let slot = WindowSlot(title: title, size: options.size, format: format, view: view) { event in
            switch event {
            case .key(let name):
                context.post(
                    "key", level: .debug, text: "The key '\(name)' was pressed in the window '\(title)'.",
                    details: ["key": .string(name)])
            case .closed:
                context.post(
                    "window-closed",
                    text:
                        "The window '\(title)' was closed; the chain keeps running. The command 'open' opens it again.")
            case .failed(let fault): failure.withLock { $0 = fault }
            }
        }
        try show(slot)
        self.slot = slot
        context.showFigures {
            ["drawn": .number(slot.drawn), "open": .bool(!slot.isClosed)]
        }
    }

    /// [stage thread] Never waits. This picture replaces one that was not drawn yet.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input, let slot else {
            throw FrameHostError(.broken, what: "window-preview was handed access units")
        }
        if let fault = failure.withLock({ $0 }) { throw fault }
        let wanted = options.view
        if wanted != view {
            view = wanted
            slot.view = wanted
        }
        if slot.isClosed {
            if isFrozen { thaw() }
            return .idle
        }
        if slot.put(frame) {
            WindowThread.shared.wake()
            untakenSince = context.clock.now()
            if isFrozen { thaw("shows pictures again") }
        } else {
            lookWhetherFrozen(slot)
        }
        return .delivered
    }

    /// Reports a screen that takes no pictures. The stage goes on.
    private func lookWhetherFrozen(_ slot: WindowSlot) {
        let patience = 5
        // A slow window takes no picture between two that it draws.
        let pause = view.rate > 0 ? 1 / view.rate : 0
        guard !isFrozen,
            context.clock.now() - untakenSince > MediaTime(seconds: Double(patience) + pause).nanoseconds
        else { return }
        isFrozen = true
        let reason = "the display server or the desktop has taken no picture for \(patience) s"
        context.recovering = reason
        context.log("The window '\(slot.title)' is frozen: \(reason). The chain goes on.", level: .warning)
    }

    private func thaw(_ news: String? = nil) {
        isFrozen = false
        context.recovering = nil
        if let news, let slot { context.log("The window '\(slot.title)' \(news).") }
    }

    /// [stage thread] Does not wait for the screen: a picture may come before its window.
    func command(_ name: String, arguments: JSONNode) throws {
        guard slot?.isClosed ?? true else { return }
        try open { try WindowThread.shared.openLater($0) }
    }

    /// [stage thread]
    func stop() {
        if let slot { WindowThread.shared.close(slot) }
        slot = nil
    }
}
