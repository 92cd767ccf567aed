// SPDX-License-Identifier: Apache-2.0

/// What the trace thread knows about a chain's stages and links, by their numbers. Removed ones stay in it.
struct TraceStages {
    /// The chain that runs from a moment on.
    struct Graph: Sendable {
        struct Stage: Sendable {
            var number: Int
            var id: String
        }
        /// In the order of the plan. The links into one stage are in the order of its inputs.
        struct Link: Sendable {
            var from: Int
            var to: Int
        }
        var stages: [Stage]
        var links: [Link]
    }

    private struct Stage {
        var id: String
        /// The name's number in the trace; 0 until it is used.
        var name: UInt64 = 0
        /// Links that lead to it, by input.
        var inputs: [UInt64] = []
        var outputs: [UInt64] = []
    }

    /// By number; nil for a stage that is not known yet.
    private var stages: [Stage?] = []
    /// A link keeps its number as long as both its stages exist.
    private var links: [[Int]: UInt64] = [:]
    /// How many bits of a flow's number are the item's number.
    private static let itemBits: UInt64 = 40

    mutating func add(_ graph: Graph) {
        for stage in graph.stages {
            if stage.number >= stages.count {
                stages += Array(repeating: nil, count: stage.number + 1 - stages.count)
            }
            stages[stage.number] = Stage(id: stage.id, name: stages[stage.number]?.name ?? 0)
        }
        for link in graph.links {
            let input = stages[link.to]?.inputs.count ?? 0
            let key = [link.from, link.to, input]
            let number = links[key] ?? UInt64(links.count + 1)
            links[key] = number
            stages[link.from]?.outputs.append(number)
            stages[link.to]?.inputs.append(number)
        }
    }

    func isKnown(_ number: Int) -> Bool { stages.indices.contains(number) && stages[number] != nil }

    func id(of number: Int) -> String { isKnown(number) ? stages[number]!.id : "stage \(number)" }

    /// The number of the stage's name in the trace.
    mutating func name(of number: Int, in packets: inout PerfettoPackets) -> UInt64 {
        guard isKnown(number) else { return packets.number(of: id(of: number)) }
        if stages[number]!.name == 0 { stages[number]!.name = packets.number(of: id(of: number)) }
        return stages[number]!.name
    }

    /// Adds the flow by which an item comes to a stage.
    func addInput(_ input: Int, of number: Int, item: Int64, to flows: inout [UInt64]) {
        guard isKnown(number), stages[number]!.inputs.indices.contains(input) else { return }
        flows.append(Self.flow(stages[number]!.inputs[input], item))
    }

    /// Adds the flows by which an item leaves a stage, one for each link.
    func addOutputs(of number: Int, item: Int64, to flows: inout [UInt64]) {
        guard isKnown(number) else { return }
        for link in stages[number]!.outputs { flows.append(Self.flow(link, item)) }
    }

    private static func flow(_ link: UInt64, _ item: Int64) -> UInt64 {
        link << itemBits | UInt64(bitPattern: item) & (1 << itemBits - 1)
    }
}

/// Numbers of the names that every trace has.
struct TraceNames {
    /// The number of the name of each ``TraceRecord/Wait``.
    let waits: [UInt64]
    /// The number of the name of each ``DropReason``.
    let drops: [UInt64]
    let gives: UInt64
    let lost: UInt64

    init(_ packets: inout PerfettoPackets) {
        var waits: [UInt64] = []
        for kind in [TraceRecord.Wait.time, .buffer, .memory, .room] { waits.append(packets.number(of: kind.name)) }
        var drops: [UInt64] = []
        for reason in DropReason.allCases { drops.append(packets.number(of: "drop: \(reason.name)")) }
        (self.waits, self.drops) = (waits, drops)
        gives = packets.number(of: "gives")
        lost = packets.number(of: "entries lost")
    }
}
