// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Publishing
import Shared

/// Posts the events of a chain to a web address, each until the receiver has taken it.
///
/// docs/events.md describes it, and docs/design/029-event-publishers.md gives the reasons.
final class Webhook: Service {
    static let info = ServiceInfo(
        id: "webhook", summary: "Posts the chain's events to a web address, with a spool on disk while it takes none.")

    private struct Running {
        var intake: EventIntake
        var sender: WebhookSender
        var hasEnded: WaitableFlag
    }

    private let options: WebhookOptions
    private let running = Locked<Running?>(nil)

    /// [control thread] Opens nothing: options arrive checked.
    init(options: WebhookOptions) { self.options = options }

    /// [control thread] Reads the files once, so that their faults are known before the run.
    func check(folder: String) throws {
        _ = try target(folder: folder)
        _ = try secret(folder: folder)
        if let spool = options.spool { try SpoolFolder.check(ServerPath.resolve(spool, folder: folder)) }
    }

    func readsFiles(folder: String) -> [String] {
        ServerPath.files(options.secret, options.login, options.caFile, options.crlFile, folder: folder)
    }

    private func secret(folder: String) throws -> WebhookSecret? {
        try options.secret.map { try WebhookSecret.read($0) { ServerPath.resolve($0, folder: folder) } }
    }

    private func target(folder: String) throws -> WebhookPost.Target {
        func file(_ path: String?, _ option: String) throws -> String? {
            try path.map { try ServerPath.readable($0, option: option, folder: folder) }
        }
        let caFile = try file(options.caFile, "caFile")
        if caFile != nil { _ = try TLSTrust(caFile: caFile, verify: true) }
        let crlFile = try file(options.crlFile, "crlFile")
        if let crlFile { try TLSTrust.checkRevocations(crlFile, option: "crlFile") }
        return WebhookPost.Target(
            address: try options.address,
            login: try options.login.map { try ServerLogin.read($0) { ServerPath.resolve($0, folder: folder) } },
            verify: options.verify, caFile: caFile, crlFile: crlFile, timeoutSeconds: options.timeoutSeconds)
    }

    /// [control thread] Opens the spool; the receiver need not be there.
    func start(_ control: any RunControl) throws {
        let folder = control.folder
        let (target, secret) = (try target(folder: folder), try secret(folder: folder))
        let spool = try Spool(
            SpoolFolder(
                options.spool.map { ServerPath.resolve($0, folder: folder) }
                    ?? SpoolFolder.usual(chain: control.chainName, key: "webhook")),
            mostBytes: options.spoolMegabytes << 20)
        let identity = EventIdentity(host: options.host ?? EventIdentity.hostName())
        let news = Locked(
            OutwardNews(kind: "webhook", servers: ["\(target.address)"], spool: spool.folderPath))
        let intake = EventIntake(
            control, key: "webhook", filter: EventFilter(level: options.level, events: options.events),
            identity: identity, spool: spool, news: news)
        let sender = WebhookSender(
            control, server: "\(target.address)", secret: secret, spool: spool, post: try WebhookPost(target),
            news: news)
        try intake.start()
        do {
            let hasEnded = WaitableFlag()
            try ServiceThread.start(name: "webhook/send") {
                sender.run()
                hasEnded.raise()
            }
            running.withLock { $0 = Running(intake: intake, sender: sender, hasEnded: hasEnded) }
        } catch {
            intake.stop(within: 100)
            throw error
        }
    }

    /// [thread of the end] Sends what it can in time; the rest stays in the spool.
    func stop(within milliseconds: Int) {
        let end = MonotonicTime.milliseconds() + Int64(milliseconds)
        let running = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let running else { return }
        running.intake.stop(within: milliseconds / 2)
        // What is left then is for the spool's end.
        running.sender.stop(at: end - 80)
        running.hasEnded.wait(milliseconds: Int(end - MonotonicTime.milliseconds()) - 30)
        running.intake.finish()
    }
}
