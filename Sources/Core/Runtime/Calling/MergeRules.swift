// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Which items a stage that takes its items in the order of their time takes before their turn, where their producer
/// waits for a place.
struct MergeRules {
    /// For each input, whether its items may be taken early, and why.
    var leaves: [EarlyTaking.Leave]
    /// The other stages of several inputs that can hold up what this one waits for.
    var fellows: [Fellow] = []

    /// Another stage of several inputs.
    struct Fellow {
        let awaited: AwaitedInputs
        /// For each input of this stage, the bits of the other's inputs whose items come from the same origin.
        let inputs: [UInt64]
    }
}

/// The inputs for which a stage with several inputs waits while its other inputs have items; none of a join by the
/// clock, which waits for no input. Any thread may look.
final class AwaitedInputs: Sendable {
    /// The first queue of the stage.
    let queue: ItemQueue
    private let bits = Atomic<UInt64>(0)

    init(_ queue: ItemQueue) { self.queue = queue }

    /// [the stage's thread] Shows a bit for each awaited input; true where the bits have changed.
    @discardableResult
    func show(_ bits: UInt64) -> Bool {
        guard self.bits.load(ordering: .relaxed) != bits else { return false }
        self.bits.store(bits, ordering: .releasing)
        return true
    }

    /// Whether the stage waits for one of these inputs.
    func has(_ bits: UInt64) -> Bool { self.bits.load(ordering: .acquiring) & bits != 0 }
}

extension RunningGraph {
    /// [the thread that makes or changes the graph] Tells each stage of several inputs which items it takes before their
    /// turn.
    func setMergeRules() {
        var inlets: [Int: StageInlet] = [:]
        for stageThread in stageThreads {
            guard case .several(let inlet) = stageThread.input, stageThread.head.kind != .join else { continue }
            inlets[runners.firstIndex { $0 === stageThread.head }!] = inlet
        }
        guard !inlets.isEmpty else { return }
        if planned.isLive {
            // Every wait ends by the clock.
            for (place, inlet) in inlets {
                let leave: EarlyTaking.Leave =
                    runners[place].kind == .filter
                    ? .livePictures : plan.inputsHaveOneOrigin(place) ? .sharedSource : .ownTurn
                inlet.set(MergeRules(leaves: inlet.queues.map { _ in leave }))
            }
            return
        }
        let taking = EarlyTaking(BudgetTopology(plan.budget.graph))
        for (place, inlet) in inlets {
            let own = taking.inputs[place]!
            let fellows = inlets.keys.sorted().filter { $0 != place }.map { other in
                MergeRules.Fellow(
                    awaited: inlets[other]!.awaited,
                    inputs: own.origins.map { origins in
                        taking.inputs[other]!.origins.enumerated().reduce(0) { bits, input in
                            origins.isDisjoint(with: input.element) ? bits : bits | 1 << UInt64(input.offset & 63)
                        }
                    })
            }
            inlet.set(
                MergeRules(
                    leaves: own.leaves, fellows: fellows.filter { $0.inputs.contains { $0 != 0 } }))
        }
    }
}
