// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A worker's end of the connection to its batch. It reports what the plan needs, waits until the worker may start,
/// and reports the worker's progress. It ends the process when the batch has ended.
///
/// The worker sends lines of JSON, and the batch answers with single bytes. The control thread uses the connection;
/// another thread waits for the socket to close.
final class BatchConnection {
    /// The option of `framehost run`; people have no use for it.
    static let option = "supervised"

    private let line: Int32
    private var lastTold: Int64 = 0

    /// - Parameter line: The descriptor of a socket whose other end the batch has.
    /// - Throws: ``FrameHostError`` if `line` is not a socket.
    init(_ line: Int32) throws {
        var status = stat()
        guard fstat(line, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--\(Self.option) \(line)"),
                what: "this descriptor is not a socket",
                remedy: "Leave the option out: only `framehost batch` uses it.")
        }
        _ = fcntl(line, F_SETFD, FD_CLOEXEC)
        self.line = line
    }

    /// Reports what the plan needs and how long the input is, in seconds. Waits until there is memory for the plan.
    /// Ends the process if there will never be enough.
    func planned(_ chain: Chain) {
        let sources = chain.plan.stages.filter { $0.kind == .source }.map(\.demand)
        let length = sources.compactMap { $0.expectedDuration?.seconds }.max()
        say(
            [("bytes", .number(chain.plan.memoryBytes)), ("hasIndex", .bool(sources.allSatisfy(\.hasIndex)))]
                + (length.map { [("length", .number($0))] } ?? []))
        let line = line
        var answer: UInt8 = 0
        let count = SystemCall.retrying { read(line, &answer, 1) }
        guard count == 1, answer == UInt8(ascii: "g") else { _exit(1) }
        // The batch sends nothing more. Anything but a byte means that the batch has ended.
        try? ServiceThread.start(name: "batch") {
            var byte: UInt8 = 0
            while SystemCall.retrying({ read(line, &byte, 1) }) > 0 {}
            kill(getpid(), SIGKILL)
        }
    }

    /// Reports how far the chain is, twice a second.
    func tick(_ chain: Chain) {
        let now = chain.clock.now()
        guard now - lastTold >= 500_000_000 else { return }
        lastTold = now
        // A lost report does no harm, because the next one says as much. A batch that was stopped (ctrl-Z) must not
        // delay the chain's control.
        say([("frames", .number(chain.progress.captured))], waits: false)
    }

    /// Reports the frames and the media seconds of the whole run, and which parts of its inputs did not arrive.
    func ended(_ chain: Chain) {
        let progress = chain.progress
        let accounts = chain.inputAccounts
        let lacks = Self.cutShort(accounts, chain.plan) + accounts.flatMap { Self.lacks($0.account, of: $0.stage) }
        say([
            ("lacks", .array(lacks.map { .string($0) })),
            ("drops", .array(chain.unmeantDrops.map { .string($0.text) })),
            ("accounts", .object(accounts.map { ($0.stage, $0.account.json) })),
            ("frames", .number(progress.captured)),
            (
                "mediaSeconds",
                .number(progress.frameRate.isZero ? 0 : Double(progress.captured) / progress.frameRate.value)
            ),
        ])
    }

    /// Reports that a fault is the machine's at present, and not the input's.
    func failed(_ error: any Error) {
        let faults = (error as? FrameHostErrors)?.errors ?? [.wrap(error)]
        guard let reason = faults.lazy.compactMap(\.reason).first(where: { $0 == .outOfResources }) else { return }
        say([("reason", .string(reason.rawValue))])
    }

    /// A sentence if the run ended before any source of the batch's input did, for example by a rule that drains. Other
    /// sources may be ended because nothing needs them any more, for example behind a join that has ended.
    private static func cutShort(
        _ accounts: [(stage: String, account: InputAccount)], _ plan: ChainPlan
    ) -> [String] {
        guard let input = getenv("input").map({ String(cString: $0) }) else { return [] }
        let own = accounts.filter { entry in
            plan.stages.contains { $0.id == entry.stage && $0.demand.readsFiles.contains(input) }
        }
        guard let first = own.first, !own.contains(where: \.account.hasEnded) else { return [] }
        return ["the run ended before '\(first.stage)' came to the end of its file"]
    }

    /// The parts of its input that a source did not give, as sentences without the full stop.
    static func lacks(_ account: InputAccount, of stage: String) -> [String] {
        var lacks: [String] = []
        if let shortfall = account.shortfall { lacks.append(shortfall) }
        if account.damaged > 0 {
            lacks.append(
                account.damaged == 1
                    ? "1 packet or picture of '\(stage)' was damaged"
                    : "\(account.damaged) packets or pictures of '\(stage)' were damaged")
        }
        return lacks
    }

    private func say(_ members: [(String, JSONNode)], waits: Bool = true) {
        let bytes = Array((JSONNode.object(members.map { (key: $0.0, value: $0.1) }).text() + "\n").utf8)
        let flags = Int32(MSG_NOSIGNAL) | (waits ? 0 : Int32(MSG_DONTWAIT))
        _ = bytes.withUnsafeBytes { send(line, $0.baseAddress, $0.count, flags) }
    }
}
