// SPDX-License-Identifier: Apache-2.0

/// Finds what several chains of one process want at the same time and only one can have: a file that one of them writes,
/// a device, a port's path, an address.
///
/// Each chain alone has no such fault. A fault belongs to the later chain. docs/design/031-several-chains.md.
public struct ChainClashes {
    /// A checked chain.
    public struct Member {
        /// The chain as its file asks for it.
        public var request: ChainRequest
        /// Its plan.
        public var plan: ChainPlan
        /// What its services claim, by the services' keys in the chain file.
        public var serviceClaims: [(key: String, claim: StageDemand.Claim)]

        /// Takes a chain into the comparison.
        public init(
            _ request: ChainRequest, _ plan: ChainPlan,
            serviceClaims: [(key: String, claim: StageDemand.Claim)] = []
        ) {
            self.request = request
            self.plan = plan
            self.serviceClaims = serviceClaims
        }
    }

    /// A fault, and the index of the chain whose fault it is.
    public struct Fault {
        /// Index of the later of the two chains.
        public var chain: Int
        /// What is wrong, at its place in that chain's file.
        public var error: FrameHostError
    }

    /// All that was found, chain by chain.
    public private(set) var faults: [Fault] = []
    private let chains: [Member]

    /// What uses files: a stage, or a reader that is not a stage.
    private struct User {
        var chain: Int
        var stage: ChainPlan.Stage?
        /// Set where the user is not a stage.
        var reader: FileClashes.Reader?
        var demand: StageDemand
    }

    /// Compares the chains, in the order in which they were named.
    public init(_ chains: [Member]) {
        self.chains = chains
        compareFiles()
        compareClaims()
        faults = faults.enumerated().sorted { ($0.element.chain, $0.offset) < ($1.element.chain, $1.offset) }
            .map(\.element)
    }

    // MARK: Files

    private mutating func compareFiles() {
        var users: [User] = []
        for (index, chain) in chains.enumerated() {
            users += FileClashes.readers(beside: chain.request).map {
                User(chain: index, reader: $0, demand: $0.demand)
            }
            users += chain.plan.stages.map { User(chain: index, stage: $0, demand: $0.demand) }
        }
        for clash in FileClashes(users.map(\.demand)).clashes {
            let (writer, other) = (users[clash.writer], users[clash.other])
            guard writer.chain != other.chain else { continue }
            if writer.chain > other.chain {
                add(
                    writer, clash.path,
                    "'\(writer.stage?.id ?? "")' would write '\(clash.path)', which \(said(other, reads: clash.isRead))"
                )
            } else if let stage = other.stage {
                add(
                    other, clash.path,
                    "'\(stage.id)' would \(clash.isRead ? "read" : "write") '\(clash.path)', which \(said(writer, reads: false))"
                )
            } else {
                let what = other.reader?.service.map { "'\($0)' reads '\(clash.path)'" } ?? "this is a chain file"
                add(
                    other, clash.path, "\(what), which \(said(writer, reads: false))",
                    "Let '\(writer.stage?.id ?? "")' write another file.")
            }
        }
    }

    /// `'rec' of the chain 'cam1' writes`
    private func said(_ user: User, reads: Bool) -> String {
        let name = chains[user.chain].request.name
        if let reader = user.reader {
            return reader.service.map { "'\($0)' of the chain '\(name)' reads" } ?? "is the file of the chain '\(name)'"
        }
        guard let stage = user.stage else { return "the chain '\(name)' uses" }
        return "'\(stage.id)' of the chain '\(name)' \(reads ? "reads" : "writes")"
    }

    private mutating func add(_ user: User, _ path: String, _ what: String, _ remedy: String = "Name another file.") {
        let request = chains[user.chain].request
        let stage = request.stages.first { $0.id == user.stage?.id }
        let place = stage.map { $0.place(file: request.file, of: $0.key(ofFile: path)) }
        faults.append(
            Fault(
                chain: user.chain,
                error: FrameHostError(
                    .invalidConfiguration, place: place ?? FaultPlace(file: request.file), what: what,
                    remedy: remedy)))
    }

    // MARK: Claims

    private mutating func compareClaims() {
        let chains = chains
        var first: [String: (chain: Int, user: String, terms: String?, isService: Bool)] = [:]
        func clash(_ claim: StageDemand.Claim, of user: String, in chain: Int, isService: Bool = false) -> String? {
            guard let other = first[claim.name] else {
                first[claim.name] = (chain, user, claim.terms, isService)
                return nil
            }
            if other.chain == chain { return nil }
            // Each service claims it against stages that listen on every address, not against other services.
            if isService, other.isService, claim.name.hasSuffix(" any") { return nil }
            if let terms = claim.terms, terms == other.terms { return nil }
            return "\(user) \(claim.what) \(other.user) of the chain '\(chains[other.chain].request.name)'"
        }
        for (index, chain) in chains.enumerated() {
            for stage in chain.plan.stages {
                for claim in stage.demand.claims {
                    guard let what = clash(claim, of: "'\(stage.id)'", in: index) else { continue }
                    let request = chain.request.stages.first { $0.id == stage.id }
                    let place = request?.place(file: chain.request.file, of: claim.option)
                    add(
                        place ?? FaultPlace(file: chain.request.file), what, claim.remedyBetweenChains ?? claim.remedy,
                        of: index)
                }
            }
            for (key, claim) in chain.serviceClaims {
                guard let what = clash(claim, of: "'\(key)'", in: index, isService: true) else { continue }
                add(
                    FaultPlace(file: chain.request.file, path: "\(key).\(claim.option)"), what, claim.remedy, of: index)
            }
        }
    }

    private mutating func add(_ place: FaultPlace, _ what: String, _ remedy: String, of chain: Int) {
        faults.append(
            Fault(
                chain: chain,
                error: FrameHostError(.invalidConfiguration, place: place, what: what, remedy: remedy)))
    }
}
