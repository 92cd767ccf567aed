// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What an isolated stage's process is told once: everything by which a stage is made and negotiated.
struct StageBrief: Sendable {
    let request: IsolationRequest
    let type: StageType
    let stage: String
    let folder: String
    let chain: String
    let isLive: Bool
    let inputs: [String]
    let format: VideoFormat
    /// Buffers in the memory that both see.
    let buffers: Int

    /// - Parameters:
    ///   - options: With the live ones that were set since.
    ///   - starts: Whether the stage starts as soon as it has negotiated.
    func words(_ options: [JSONNode.Member], starts: Bool) -> JSONNode {
        [
            "plugin": .string(request.plugin), "type": .string(type.info.id), "stage": .string(stage),
            "folder": .string(folder), "chain": .string(chain), "isLive": .bool(isLive),
            "inputs": .array(inputs.map { .string($0) }), "format": LinkWords.words(format),
            "buffers": .number(buffers), "options": JSONNode(.object(options)), "starts": .bool(starts),
        ]
    }
}

/// The processes of one isolated stage, one after the other.
///
/// The stage's thread asks for the present one and says when it is lost. The ``Supervisor`` starts the next. `@unchecked
/// Sendable`: everything that changes is under a lock.
final class IsolatedStage: @unchecked Sendable {
    private let brief: StageBrief
    private let context: StageContext
    /// Live options that were set, over those of the chain file.
    private let options: Locked<[JSONNode.Member]>
    private struct Book {
        var link: StageLink?
        /// What the stage asked for when it negotiated first.
        var demand: StageDemand?
        /// Whether every further process starts its stage at once.
        var isStarted = false
        var isOver = false
        /// Whether the first process has started its stage.
        var hasStarted = false
        /// Processes that ended in a row before one was ready.
        var failures = 0
        /// Whether the next one is about to be started.
        var isNextDue = false
        /// Those that the stage's thread has not been told of.
        var failedStarts = 0
        var deaths = 0
        var lastDeath: String?
        /// Figures of the stage's own.
        var figures: JSONNode?
        /// Whether the process said last that the stage recovers or is impaired.
        var hasSaidState = false
    }
    private let book = Locked(Book())
    /// For a process that takes the place of another, in nanoseconds.
    private static let startLimit: Int64 = 30_000_000_000

    init(_ brief: StageBrief, options: [JSONNode.Member], _ context: StageContext) {
        (self.brief, self.context) = (brief, context)
        self.options = Locked(options)
    }

    // MARK: From the making to the start

    /// [control thread] Starts the first process and waits until its stage has negotiated.
    ///
    /// - Throws: What the stage refuses, or how its process ended.
    func negotiate() throws -> (demand: StageDemand, notes: [(text: String, isWarning: Bool)]) {
        let link = try launch()
        let state = link.wait(seconds: 30) { if case .made = $0 { false } else { true } }
        switch state {
        case .negotiated(let demand, let notes):
            book.withLock { $0.demand = demand }
            return (demand, notes)
        case .gone(let death): throw refusal(death, while: "while it was made and negotiated")
        case .made, .described, .ready:
            end()
            throw FrameHostError(
                .broken, what: "its process did not negotiate within 30 s",
                remedy: "Report this to the plugin's author.")
        }
    }

    /// [setup thread] Starts the stage and waits until it has started.
    ///
    /// - Throws: What the stage refuses, or how its process ended.
    func start() throws {
        guard
            let link = book.withLock({ book in
                book.isStarted = true
                return book.link
            })
        else { return }
        try Supervisor.shared.perform { link.say(["start": true]) }
        let state = link.wait(seconds: 3600, unless: { self.context.isEnded }) {
            if case .ready = $0 { true } else { false }
        }
        switch state {
        case .gone(let death): throw refusal(death, while: "while it started")
        case .ready: book.withLock { $0.hasStarted = true }
        case .made, .described, .negotiated:
            throw FrameHostError(.stopped, what: "stopped while the stage started")
        }
    }

    private func refusal(_ death: StageLink.Death, while what: String) -> any Error {
        death.refusal
            ?? FrameHostError(
                .broken, what: "its process \(death.what) \(what)",
                remedy: "Report this to the plugin's author.", cause: death.lastWords.joined(separator: "\n"))
    }

    // MARK: While it runs

    /// [stage thread] The present process, if frames may come to it. It may have gone since: the next call tells.
    func present() -> StageLink? { book.withLock { $0.link?.wasReady == true ? $0.link : nil } }

    /// [stage thread] Waits until the next process has come further, or for so long.
    func wait(seconds: Double) {
        guard let link = book.withLock({ $0.link }) else { return MonotonicTime.sleep(seconds: min(seconds, 0.01)) }
        _ = link.wait(seconds: seconds) { if case .ready = $0 { true } else { false } }
    }

    /// [stage thread] How often a process ended since the last call before it was ready to take the place of a lost one.
    func takeFailedStarts() -> Int {
        book.withLock { book in
            defer { book.failedStarts = 0 }
            return book.failedStarts
        }
    }

    /// [stage thread] The process has ended, or is to be ended for the reason. Starts the next.
    ///
    /// - Returns: What happened, in words that follow "its process".
    func lose(_ link: StageLink, _ reason: String?) -> String {
        try? Supervisor.shared.perform { link.end(reason) }
        // A moment, for the signal and the last words. No longer, since frames wait.
        let state = link.wait(seconds: 0.1) { if case .gone = $0 { true } else { false } }
        var text = reason.map { "was ended, because \($0)" } ?? "has ended"
        if case .gone(let death) = state { text = death.text }
        book.withLock { book in
            book.deaths += 1
            book.lastDeath = text
            if book.link === link { book.link = nil }
        }
        next()
        return text
    }

    /// [any thread] Has the next process started: at once, or after 0.1, 0.2, 0.4 … 10 s if the last ones were never ready.
    private func next() {
        let failures = book.withLock { book -> Int? in
            guard !book.isOver, book.link == nil, !book.isNextDue else { return nil }
            book.isNextDue = true
            defer { book.failures += 1 }
            return book.failures
        }
        guard let failures else { return }
        let delay = failures == 0 ? 0 : min(Int64(100_000_000) << Int64(min(failures - 1, 10)), 10_000_000_000)
        // Not by the stage's thread, which frames wait for.
        try? Supervisor.shared.perform(after: delay) { [weak self] in
            guard let self else { return }
            self.book.withLock { $0.isNextDue = false }
            do {
                let link = try self.launch()
                try Supervisor.shared.perform(after: Self.startLimit) { [weak link] in
                    if let link, !link.wasReady { link.end("it was not ready within 30 s") }
                }
            } catch {
                self.context.log("\(FrameHostError.wrap(error))", level: .warning)
                self.next()
            }
        }
    }

    private func launch() throws -> StageLink {
        let link = try StageLink(
            brief.format, bufferCount: brief.buffers, of: brief.type, brief.request.sandbox,
            hear: { [weak self] in self?.hear($0) }, changed: { [weak self] in self?.changed($0) })
        let starts = book.withLock { book -> Bool? in
            guard !book.isOver else { return nil }
            book.link = link
            return book.isStarted
        }
        if let starts { try Supervisor.shared.start(link, brief.words(options.withLock { $0 }, starts: starts)) }
        return link
    }

    /// [isolation thread]
    private func changed(_ link: StageLink) {
        switch link.state {
        case .made, .described: break
        case .negotiated(let demand, _):
            let isOther = book.withLock { book in
                book.isStarted && book.demand.map { $0.isolated != demand.isolated } ?? false
            }
            if isOther { link.end("it asks for other memory than the process before it") }
        case .ready: book.withLock { $0.failures = 0 }
        case .gone(let death):
            // One that was ready is noticed by the stage's thread, at its next call. The end of the first is a fault of
            // its negotiation or start.
            let isLost = book.withLock { book -> Bool in
                guard !link.wasReady, book.link === link, book.hasStarted, !book.isOver else { return false }
                book.link = nil
                book.deaths += 1
                book.failedStarts += 1
                book.lastDeath = death.text
                return true
            }
            guard isLost else { return }
            let cause = death.refusal.map { "refuses to start: \($0.errors[0])" } ?? death.text
            context.post(
                "stage-lost", level: .warning, text: "A new process of the stage \(cause).", details: details)
            next()
        }
    }

    /// [isolation thread]
    private func hear(_ message: JSONNode) {
        if let lost = message["lost"]?.asInt {
            context.log("Its process said too much at once: \(lost) messages were left out.", level: .warning)
        } else if message["state"] != nil {
            // The stage's own words, if its process says some; a process that says none leaves what others wrote.
            let (recovering, impairment) = (message["recovering"]?.asString, message["impairment"]?.asString)
            let isTold = book.withLock { book -> Bool in
                book.figures = message["figures"].flatMap { $0.asObject == nil ? nil : $0 }
                defer { book.hasSaidState = recovering != nil || impairment != nil }
                return book.hasSaidState || recovering != nil || impairment != nil
            }
            if isTold { (context.recovering, context.impairment) = (recovering, impairment) }
        } else if let event = LinkWords.event(message, stage: brief.stage, time: context.clock.now()) {
            let isOwn = brief.type.program == nil || event.name == "log"
            guard isOwn || brief.type.info.events.contains(where: { $0.name == event.name }) else {
                return context.log(
                    "Its process posts the event '\(event.name.printable())', which it does not declare.",
                    level: .warning)
            }
            context.events.post(event)
        }
    }

    /// [any thread] For the event `stage-lost`.
    var details: JSONNode {
        book.withLock { ["deaths": .number($0.deaths), "reason": .string($0.lastDeath ?? "")] }
    }

    /// [any thread] Beside those that the stage shows itself.
    var figures: JSONNode {
        let (deaths, own) = book.withLock { ($0.deaths, $0.figures) }
        let process: JSONNode = ["deaths": .number(deaths)]
        return .object((own?.asObject ?? []).map { ($0.key, $0.value) } + [("process", process)])
    }

    /// [stage thread] The options that every further process has.
    func keep(_ members: [JSONNode.Member]) { options.withLock { $0 = $0.overlaid(with: members) } }

    /// [any thread] Ends the present process and starts no further one.
    ///
    /// - Parameter politely: Whether the process ends by itself, since its stage has been stopped.
    func end(politely: Bool = false) {
        let link = book.withLock { book -> StageLink? in
            book.isOver = true
            defer { book.link = nil }
            return book.link
        }
        guard let link else { return }
        link.isLeaving.store(true, ordering: .relaxed)
        if politely { _ = link.wait(seconds: 2) { if case .gone = $0 { true } else { false } } }
        if !link.isGone { try? Supervisor.shared.perform { link.end("was not needed any more") } }
    }

    deinit { end() }
}

extension StageDemand {
    /// What the plan was made by, and what no live option may change.
    fileprivate var isolated: [Int] {
        [access == .modify ? 1 : 0, hold, delay, mustNotBePassed ? 1 : 0]
    }
}
