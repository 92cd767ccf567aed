// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The services of a run. [control thread]
final class RunServices {
    private let services: [(request: ServiceRequest, service: any Service)]
    private var begun: [any Service] = []

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
            begun.append(service)
            do {
                try CrashNote.during("the service '\(request.key)' was being started") { try service.start(control) }
            } catch { throw request.placed(error) }
        }
    }

    func stop() {
        for service in begun.reversed() { service.stop() }
        begun = []
    }
}
