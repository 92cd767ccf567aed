// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// The services of a run. [control thread]
///
/// All of them end at the same time, each on a thread of its own, and together they have ``patience``: whatever one of them
/// waits for, the others go on, and so does the end of the run.
final class RunServices {
    /// What services have for their last work, ms.
    static let patience = 500
    /// How much longer the run waits for them, ns: a busy machine starts threads late.
    private static let grace: Int64 = 50_000_000

    private let services: [(request: ServiceRequest, service: any Service)]
    private var begun: [(key: String, service: any Service)] = []
    /// Services that are ending, each until it has.
    private let ending = Locked<[String]>([])

    /// - Throws: ``FrameHostErrors``.
    init(_ requests: [ServiceRequest]) throws { services = try requests.map { ($0, try $0.make()) } }

    var isEmpty: Bool { services.isEmpty }

    /// What only one chain of the process can have, with the key of the service that claims it.
    var claims: [(key: String, claim: StageDemand.Claim)] {
        services.flatMap { entry in entry.service.claims.map { (key: entry.request.key, claim: $0) } }
    }

    /// - Throws: ``FrameHostError``. The caller then stops what was started.
    func start(_ control: HostControl) throws {
        for (request, service) in services {
            begun.append((request.key, service))
            do {
                try CrashNote.during("the service '\(request.key)'", "being started") { try service.start(control) }
            } catch { throw request.placed(error) }
        }
    }

    /// Tells all services that the run is over, does `work` while they end, and waits for them.
    ///
    /// - Returns: The keys of those that have not ended in time. Their threads are left behind.
    @discardableResult
    func stop(_ work: () -> Void = {}) -> [String] {
        let end = MonotonicTime.now() + Int64(Self.patience) * 1_000_000
        let left = { @Sendable () -> Int in max(Int((end - MonotonicTime.now()) / 1_000_000), 0) }
        var alone: [any Service] = []
        for (key, service) in begun.reversed() {
            ending.withLock { $0.append(key) }
            do {
                try ServiceThread.start(name: "\(key)/end") { [ending] in
                    service.stop(within: left())
                    ending.withLock { $0.removeAll { $0 == key } }
                }
            } catch {
                ending.withLock { $0.removeAll { $0 == key } }
                alone.append(service)
            }
        }
        begun = []
        work()
        for service in alone { service.stop(within: left()) }
        MonotonicTime.wait(until: end + Self.grace) { ending.withLock(\.isEmpty) }
        return ending.withLock { $0 }
    }
}
