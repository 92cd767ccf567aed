// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Chain {
    /// The least limit of a trace in bytes: room for its own description, and for a second of a chain.
    public static let leastTraceBytes = 1_000_000

    /// [control thread, before the run] Lets the run write a trace into `path`: what each thread does, frame by frame,
    /// as Perfetto reads it. The chain must have been made with `traced`.
    ///
    /// `path` must not be a regular file that is there already; a device or pipe is written into.
    ///
    /// - Parameters:
    ///   - path: The file to write.
    ///   - option: What names the file: `--trace`.
    ///   - mostBytes: Where the trace ends, if the run does not end before.
    /// - Throws: ``FrameHostError`` where the file belongs to the chain, is there, or cannot be made.
    public func openTrace(_ path: String, as option: String, mostBytes: Int) throws {
        guard let tracer else {
            throw FrameHostError(.broken, place: option, what: "the chain was made without a trace")
        }
        if let fault = fault(ofWriting: path, as: option) { throw fault }
        do throws(FileRefusal) {
            var status = stat()
            let isThere = stat(path, &status) == 0
            if isThere, status.st_mode & S_IFMT == S_IFREG { throw .exists }
            let file =
                isThere
                ? try files.rewrite(path, as: option, patience: 1_000_000_000) : try files.create(path, as: option)
            if !file.isRegular { _ = fcntl(file.descriptor, F_SETFL, fcntl(file.descriptor, F_GETFL) | O_NONBLOCK) }
            traceFile = TraceFile(file: file, mostBytes: max(mostBytes, Self.leastTraceBytes))
            tracePath = path
        } catch {
            var fault = error.fault(path)
            (fault.code, fault.place) = (.invalidConfiguration, FaultPlace(argument: option))
            throw fault
        }
        tracer.open()
    }

    /// [control thread] Removes the trace of a chain that will not run: an empty file would be in the way of the next
    /// try.
    public func discardTrace() {
        if let traceFile { files.discard(traceFile.file) }
        traceFile = nil
    }

    /// [control thread, before the first thread] Starts what ``openTrace(_:as:mostBytes:)`` has prepared.
    func beginTrace() {
        guard let tracer else { return }
        guard let traceFile else { return tracer.giveUp() }
        let name = graph.request.name
        do {
            try tracer.begin(
                traceFile, title: "framehost \(name)", events: hub.subscribe(takesBacklog: false)
            ) { [weak self] in self?.tellOfTrace($0) }
        } catch {
            tracer.giveUp()
            var fault = FrameHostError.wrap(error)
            tracer.refusal = fault
            discardTrace()
            // The place is the name of a thread.
            fault.place = FaultPlace()
            tellOfTrace("The run goes on without a trace: \(fault)", level: .warning, nil)
        }
    }

    /// [control thread, when all stages have ended]
    func endTrace() {
        guard let tracer, traceFile != nil else { return }
        guard let outcome = tracer.end() else {
            return tellOfTrace(
                "The trace '\(tracePath)' is not complete: it could not be written in time.", level: .warning, nil)
        }
        if case .finished = outcome.end { tellOfTrace(outcome) }
    }

    /// [control thread, after the run] Why the trace that was asked for is not there or not whole; nil where it is, and
    /// where it ends at the size that was asked for.
    public var traceFault: FrameHostError? {
        guard let tracer, !tracePath.isEmpty else { return nil }
        var fault: FrameHostError?
        if let refusal = tracer.refusal {
            fault = refusal
        } else if let ending = tracer.ending {
            fault = ending.fault(of: tracePath)
        } else {
            fault = FrameHostError(
                .unavailable, what: "'\(tracePath)' is not complete: it could not be written in time",
                remedy: "Name a file on a faster disk.")
        }
        fault?.place = FaultPlace(argument: "--trace")
        return fault
    }

    private func tellOfTrace(_ outcome: Tracer.Outcome) {
        let tenths = outcome.byteCount / 100_000
        let size =
            outcome.byteCount < 1_000_000
            ? "\(outcome.byteCount / 1000) kB" : "\(tenths / 10).\(tenths % 10) MB"
        let lost =
            outcome.lost == 0
            ? ""
            : " \(outcome.lost == 1 ? "1 entry was" : "\(outcome.lost) entries were") lost, because they came faster than they could be written: the trace has gaps there."
        switch outcome.end {
        case .finished:
            tellOfTrace(
                "The trace '\(tracePath)' has \(size); ui.perfetto.dev shows it.\(lost)",
                level: outcome.lost > 0 ? .warning : .info, outcome)
        case .full:
            tellOfTrace(
                "The trace '\(tracePath)' ends here, because it has reached its limit with \(size); the run goes on.\(lost) Allow a larger trace with --trace-megabytes.",
                level: .warning, outcome)
        case .failed(let code):
            tellOfTrace(
                "The trace ends here with \(size); the run goes on. \(FileRefusal.failed(code).fault(tracePath))\(lost)",
                level: .warning, outcome)
        }
    }

    private func tellOfTrace(_ text: String, level: Event.Level, _ outcome: Tracer.Outcome?) {
        var details: [JSONNode.Member] = [JSONNode.Member(key: "path", value: .string(tracePath))]
        if let outcome {
            details.append(JSONNode.Member(key: "bytes", value: .number(outcome.byteCount)))
            details.append(JSONNode.Member(key: "lost", value: .number(outcome.lost)))
        }
        hub.post(
            Event(
                name: "trace-did-stop", level: level, text: text, details: JSONNode(.object(details)),
                time: clock.now()))
    }
}

extension Tracer.Outcome {
    /// Why the trace in the file `path` is not whole; nil where it is, and where it ends at its limit without gaps.
    func fault(of path: String) -> FrameHostError? {
        if case .failed(let code) = end { return FileRefusal.failed(code).fault(path) }
        guard lost > 0 else { return nil }
        return FrameHostError(
            .exhausted, what: "'\(path)' has gaps: \(lost == 1 ? "1 entry was" : "\(lost) entries were") lost",
            remedy: "End other programs, or lower the frame rate of the chain.")
    }
}
