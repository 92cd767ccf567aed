// SPDX-License-Identifier: Apache-2.0

import CSDL2
import FrameCore
import Synchronization

/// The thread on which all windows of the process live: SDL wants one for all of them.
///
/// It starts with the first window and stays. Stages give it work, and put pictures into the slots of their windows.
/// It never waits for a stage.
final class WindowThread: Sendable {
    static let shared = WindowThread()

    /// Work for the thread: done with its windows, or refused where SDL does not start.
    private struct Task: Sendable {
        var perform: @Sendable (inout Windows) -> Void
        var refuse: @Sendable (FrameHostError) -> Void
    }

    /// The state of the thread, which only the thread uses.
    struct Windows {
        var all: [Window] = []

        mutating func remove(_ slot: WindowSlot) { all.removeAll { $0.slot === slot } }
    }

    private struct State {
        var tasks: [Task] = []
        /// The slots of windows that are open, or about to be opened.
        var slots: [WindowSlot] = []
        var isRunning = false
    }

    private let state = Locked(State())
    /// At most one wake-up is under way.
    private let isWoken = Atomic<Bool>(false)
    /// Not an event of SDL: sending one calls the display server, and no stage thread may wait for that.
    private let wakeUps = WakeUps()

    // MARK: From stages

    /// [control thread] Opens a window.
    ///
    /// - Throws: ``FrameHostError`` where there is no screen, or where it does not answer.
    func open(_ slot: WindowSlot) throws {
        if DisplayServer.isLost { throw WindowFault.screenLost }
        let answer = Answer<Result<Void, FrameHostError>>()
        try post(opening(slot) { answer.give($0) }, for: slot)
        let patience = 10
        guard let result = answer.wait(seconds: patience) else {
            // The window may still open later. It is then closed.
            close(slot)
            throw WindowFault.noAnswer(patience)
        }
        try result.get()
    }

    /// [stage thread] Lets the thread open a window when it can. The slot's `report` tells where that failed.
    func openLater(_ slot: WindowSlot) throws {
        if DisplayServer.isLost { throw WindowFault.screenLost }
        try post(
            opening(slot) { result in
                guard case .failure(let fault) = result else { return }
                slot.isClosed = true
                slot.report(.failed(fault))
            }, for: slot)
    }

    private func opening(
        _ slot: WindowSlot, tell: @escaping @Sendable (Result<Void, FrameHostError>) -> Void
    ) -> Task {
        Task { windows in
            do {
                windows.all.append(try Window(slot))
                tell(.success(()))
            } catch {
                tell(.failure(.wrap(error)))
            }
        } refuse: {
            tell(.failure($0))
        }
    }

    /// [any thread] Closes the window of a stage that ends, and waits for it a second at most.
    func close(_ slot: WindowSlot) {
        let answer = Answer<Void>()
        let isLeft = state.withLock { state in
            state.slots.removeAll { $0 === slot }
            guard state.isRunning, !DisplayServer.isLost else { return false }
            state.tasks.append(
                Task { windows in
                    windows.remove(slot)
                    answer.give(())
                } refuse: { _ in
                    answer.give(())
                })
            return true
        }
        if isLeft {
            wake()
            _ = answer.wait(seconds: 1)
        }
        slot.empty()
    }

    /// [any thread] A slot has a new picture, or another view.
    func wake() {
        if !isWoken.exchange(true, ordering: .acquiringAndReleasing) { wakeUps.post() }
    }

    private func post(_ task: Task, for slot: WindowSlot) throws {
        let isNew = state.withLock { state in
            state.tasks.append(task)
            state.slots.append(slot)
            guard !state.isRunning else { return false }
            state.isRunning = true
            return true
        }
        guard isNew else { return wake() }
        do {
            try ServiceThread.start(name: "windows") { self.run() }
        } catch {
            state.withLock { $0 = State() }
            throw error
        }
    }

    private func takeTasks() -> [Task] {
        state.withLock { state in
            defer { state.tasks = [] }
            return state.tasks
        }
    }

    // MARK: The thread

    private func run() {
        SDL_SetMainReady()
        // SDL would write its lines to standard error. A call that fails says so, and its reason is reported.
        SDL_LogSetOutputFunction({ _, _, _, _ in }, nil)
        for (hint, value) in [
            // Signals belong to the program, a preview keeps no screen awake, and closing a window only ends that
            // window.
            (SDL_HINT_NO_SIGNAL_HANDLERS, "1"), (SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1"),
            (SDL_HINT_QUIT_ON_LAST_WINDOW_CLOSE, "0"),
            // Smooth where pictures are scaled.
            (SDL_HINT_RENDER_SCALE_QUALITY, "1"),
        ] { SDL_SetHint(hint, value) }
        guard SDL_InitSubSystem(SDL_INIT_VIDEO) == 0 else {
            let fault = WindowFault.noScreen("'\(Window.reason)'")
            return giveUp(fault)
        }
        // Where nothing else works SDL uses a driver that shows nothing, and reports success.
        let driver = SDL_GetCurrentVideoDriver().map { String(cString: $0) } ?? ""
        if ["dummy", "offscreen"].contains(driver), SDL_getenv("SDL_VIDEODRIVER") == nil {
            SDL_QuitSubSystem(SDL_INIT_VIDEO)
            return giveUp(WindowFault.noScreen("only its driver '\(driver)' starts, which shows nothing"))
        }
        DisplayServer.watch()
        showWindows()
    }

    /// With no window left it waits for the next one: what SDL and a graphics driver have loaded cannot be unloaded
    /// while their threads run.
    private func showWindows() -> Never {
        var windows = Windows()
        while true {
            isWoken.store(false, ordering: .releasing)
            for task in takeTasks() { task.perform(&windows) }
            wait(until: draw(&windows), &windows)
        }
    }

    /// [window thread] The display server has gone: every window fails, and the thread does nothing from then on.
    func screenIsLost() {
        let slots = state.withLock { state in
            defer { state.slots = [] }
            return state.slots
        }
        for slot in slots {
            slot.isClosed = true
            slot.empty()
            slot.report(.failed(WindowFault.screenLost))
        }
        giveUp(WindowFault.screenLost)
    }

    private func giveUp(_ fault: FrameHostError) {
        let tasks = state.withLock { state in
            defer { state = State() }
            return state.tasks
        }
        for task in tasks { task.refuse(fault) }
    }

    /// - Returns: When to look again, SDL's milliseconds.
    private func draw(_ windows: inout Windows) -> Int64? {
        let now = Int64(SDL_GetTicks64())
        var next: Int64?
        for window in windows.all {
            do {
                guard let again = try window.drawNewest(now: now) else { continue }
                next = min(next ?? again, again)
            } catch {
                window.slot.report(.failed(.wrap(error)))
                window.slot.isClosed = true
                windows.remove(window.slot)
                window.slot.empty()
            }
        }
        return next
    }

    /// Waits for work, at most until `instant`, and handles what the display server has sent. It checks for that a
    /// hundred times a second while there are windows.
    private func wait(until instant: Int64?, _ windows: inout Windows) {
        let most: Int64 = windows.all.isEmpty ? 1000 : 10
        wakeUps.wait(milliseconds: instant.map { min(max($0 - Int64(SDL_GetTicks64()), 1), most) } ?? most)
        var event = SDL_Event()
        while SDL_PollEvent(&event) == 1 { handle(event, &windows) }
    }

    private func handle(_ event: SDL_Event, _ windows: inout Windows) {
        switch SDL_EventType(rawValue: event.type) {
        case SDL_WINDOWEVENT:
            guard let window = windows.all.first(where: { $0.id == event.window.windowID }) else { return }
            switch SDL_WindowEventID(rawValue: UInt32(event.window.event)) {
            case SDL_WINDOWEVENT_CLOSE:
                window.slot.isClosed = true
                windows.remove(window.slot)
                window.slot.empty()
                window.slot.report(.closed)
            case SDL_WINDOWEVENT_EXPOSED, SDL_WINDOWEVENT_SIZE_CHANGED: window.draw()
            default: break
            }
        case SDL_KEYDOWN:
            guard event.key.repeat == 0, let window = windows.all.first(where: { $0.id == event.key.windowID }) else {
                return
            }
            let name = String(cString: SDL_GetKeyName(event.key.keysym.sym)).lowercased()
            if !name.isEmpty { window.slot.report(.key(name)) }
        default: break
        }
    }
}

/// `@unchecked Sendable`: the semaphore is SDL's, made for several threads. Never ends.
private final class WakeUps: @unchecked Sendable {
    private let semaphore = SDL_CreateSemaphore(0)

    func post() { SDL_SemPost(semaphore) }

    func wait(milliseconds: Int64) { SDL_SemWaitTimeout(semaphore, UInt32(clamping: milliseconds)) }
}

/// A value that another thread gives once. `@unchecked Sendable`: the semaphore is SDL's, made for several threads.
private final class Answer<Value: Sendable>: @unchecked Sendable {
    private let value = Locked<Value?>(nil)
    private let semaphore = SDL_CreateSemaphore(0)

    deinit { SDL_DestroySemaphore(semaphore) }

    func give(_ value: Value) {
        self.value.withLock { $0 = value }
        SDL_SemPost(semaphore)
    }

    /// Nil when nothing came in time.
    func wait(seconds: Int) -> Value? {
        SDL_SemWaitTimeout(semaphore, UInt32(seconds * 1000))
        return value.withLock { $0 }
    }
}
