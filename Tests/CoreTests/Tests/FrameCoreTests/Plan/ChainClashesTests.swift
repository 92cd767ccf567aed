// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

/// What several chains of one process cannot have at once, and the memory that one leaves to the next.
@Suite struct ChainClashesTests {
    /// A checked chain that writes, reads and claims what is given.
    private func member(
        _ name: String, writes: [String] = [], reads: [String] = [], claims: [StageDemand.Claim] = [],
        services: [(key: String, claim: StageDemand.Claim)] = []
    ) throws -> ChainClashes.Member {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "sink")
        sketch.request.file = "\(name).json"
        var plan = try Chain.plan(sketch.request)
        let sink = plan.stages.count - 1
        plan.stages[sink].demand.writesFiles = writes
        plan.stages[sink].demand.readsFiles = reads
        plan.stages[sink].demand.claims = claims
        return ChainClashes.Member(sketch.request, plan, serviceClaims: services)
    }

    private func text(_ clashes: ChainClashes) -> [String] { clashes.faults.map(\.error.description) }

    private func text(_ chains: ChainClashes.Member...) -> [String] { text(ChainClashes(chains)) }

    private func port(_ terms: String?) -> StageDemand.Claim {
        StageDemand.Claim("port 1", terms: terms, option: "port", what: "serves port 1 as", remedy: "Take another.")
    }

    @Test func aFileHasOneWriterInAllChains() throws {
        let folder = NSTemporaryDirectory()
        let (one, other) = ("\(folder)clash-\(UUID()).mp4", "\(folder)clash-\(UUID()).mp4")
        let found = ChainClashes([
            try member("a", writes: [one]), try member("b", writes: [other]), try member("c", writes: [one]),
            try member("d", reads: [other]),
        ])
        #expect(found.faults.map(\.chain) == [2, 3])
        #expect(
            text(found) == [
                "c.json: stages[1].path: 'sink' would write '\(one)', which 'sink' of the chain 'a' writes. Name another file.",
                "d.json: stages[1].path: 'sink' would read '\(other)', which 'sink' of the chain 'b' writes. Name another file.",
            ])
    }

    @Test func severalChainsMayReadAFile() throws {
        let chains = try ["a", "b"].map { try member($0, reads: ["/etc/passwd"]) }
        #expect(text(ChainClashes(chains)).isEmpty)
    }

    @Test func noChainWritesTheFileOfAnother() throws {
        let file = "\(NSTemporaryDirectory())clash-\(UUID()).json"
        try Data("{}".utf8).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        let first = try member("a", writes: [file])
        var second = try member("b")
        second.request.file = file
        let name = second.request.name
        #expect(
            text(first, second) == [
                "\(file): this is a chain file, which 'sink' of the chain 'a' writes. Let 'sink' write another file."
            ])
        #expect(
            text(second, first) == [
                "a.json: stages[1].path: 'sink' would write '\(file)', which is the file of the chain '\(name)'. Name another file."
            ])
    }

    @Test func whatIsClaimedIsSharedOnEqualTermsOnly() throws {
        let first = try member("a", claims: [port("x")])
        let same = try member("b", claims: [port("x")])
        #expect(text(first, same).isEmpty)
        for terms in ["y", nil] {
            let other = try member("b", claims: [port(terms)])
            #expect(
                text(first, other) == [
                    "b.json: stages[1].port: 'sink' serves port 1 as 'sink' of the chain 'a'. Take another."
                ])
        }
        // Two of one chain are that chain's own fault.
        let alone = try member("a", claims: [port(nil), port(nil)])
        #expect(text(alone).isEmpty)
    }

    @Test func aServiceClaimsTooAndItsFaultHasItsKey() throws {
        let claim = StageDemand.Claim(
            "listen 1", option: "listen", what: "listens at 1, as does", remedy: "Take another.")
        let chains = try ["a", "b", "c"].map { try member($0, services: [("control", claim)]) }
        let found = ChainClashes(chains)
        #expect(found.faults.map(\.chain) == [1, 2])
        #expect(
            text(found).first
                == "b.json: control.listen: 'control' listens at 1, as does 'control' of the chain 'a'. Take another.")
    }

    @Test func theNextChainHasWhatTheOnesBeforeLeave() throws {
        let plan = try member("a").plan
        // At least the buffers of 16x16 GRAY8.
        #expect(plan.memoryBytes >= 16 * 16)
        let memory = AvailableMemory(bytes: 1000)
        #expect(memory.left(besideOtherChains: 0) == memory)
        #expect(
            memory.left(besideOtherChains: 400)
                == AvailableMemory(bytes: 600, holder: "this machine, beside the other chains,"))
        #expect(memory.left(besideOtherChains: .max).bytes == 0)
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "sink")
        sketch.request.memory = AvailableMemory(bytes: plan.memoryBytes).left(besideOtherChains: 1)
        #expect(throws: FrameHostErrors.self) { try Chain.plan(sketch.request) }
        sketch.request.memory = AvailableMemory(bytes: plan.memoryBytes)
        #expect(throws: Never.self) { try Chain.plan(sketch.request) }
    }
}
