// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Stages that take the items of several inputs in the order of their time, as ``TimeOrder`` and ``StageInlet`` do.
extension StateMoves {
    func takeInOrder(_ state: State, _ node: Int, _ merge: StateLayout.Merge) {
        let entry = layout.nodes[node]
        guard let input = turn(state, node, merge) else { return }
        let next = copy(state)
        let item = pop(next, entry.inputs[input])
        if merge.isFilter, input > 0 {
            if merge.ahead > 0 {
                // The oldest one is forgotten.
                let first = merge.seen[input - 1]
                for index in 1..<max(merge.ahead, 1) { next[first + index - 1] = next[first + index] }
                next[first + merge.ahead - 1] = UInt8(StateLayout.unitPool << 5) | (item & 31)
            }
            return record(next)
        }
        next[entry.hand + input] = item
        enter(next, node)
    }

    /// The input from which the next item is taken; nil while the stage waits.
    private func turn(_ state: State, _ node: Int, _ merge: StateLayout.Merge) -> Int? {
        let present = presentInputs(state, node)
        guard let first = lowest(of: present, state, node, merge) else { return nil }
        if present.count == layout.nodes[node].inputs.count { return first }
        let isPressed = present.contains { input in
            switch merge.leaves[input] {
            case .ownTurn: false
            case .joinedSource, .sharedSource, .livePictures: self.isPressed(state, node, input)
            case .lateInput:
                self.isPressed(state, node, input)
                    && merge.fellows[input].contains { isAwaited(state, $0.node, input: $0.input) }
            }
        }
        return isPressed ? lowest(of: present.filter { merge.leaves[$0] != .ownTurn }, state, node, merge) : nil
    }

    private func presentInputs(_ state: State, _ node: Int) -> [Int] {
        let inputs = layout.nodes[node].inputs
        return inputs.indices.filter { state[layout.queues[inputs[$0]].first] != Self.none }
    }

    /// Of these inputs, which all have items, the one whose item comes first. A filter's picture comes after the further
    /// inputs' items up to its time, and so many more.
    private func lowest(of inputs: [Int], _ state: State, _ node: Int, _ merge: StateLayout.Merge) -> Int? {
        func time(_ input: Int) -> UInt8 { state[layout.queues[layout.nodes[node].inputs[input]].first] & 31 }
        guard merge.isFilter else { return inputs.min { (time($0), $0) < (time($1), $1) } }
        let further = inputs.filter { $0 > 0 }.min { (time($0), $0) < (time($1), $1) }
        guard inputs.contains(0) else { return further }
        let picture = time(0)
        let early = inputs.filter { input in
            guard input > 0 else { return false }
            let later = items(state, merge.seen[input - 1], merge.ahead).count { $0 & 31 > picture }
            return time(input) <= picture || later < merge.ahead
        }
        return early.min { (time($0), $0) < (time($1), $1) } ?? 0
    }

    /// The producer of this input waits for a place.
    private func isPressed(_ state: State, _ node: Int, _ input: Int) -> Bool {
        let edge = layout.nodes[node].inputs[input]
        let queue = layout.queues[edge]
        guard length(state, queue.first, queue.capacity) == queue.capacity else { return false }
        let producer = layout.nodes[layout.graph.edges[edge].from]
        let branch = producer.outputs.firstIndex(of: edge)!
        return state[producer.phase] == Phase.push.rawValue && state[producer.mask] >> UInt8(branch) & 1 == 1
    }

    /// Whether items of a merge wait for one of this input.
    private func isAwaited(_ state: State, _ node: Int, input: Int) -> Bool {
        guard isIdle(thread: layout.nodes[node].thread, state) else { return false }
        let present = presentInputs(state, node)
        return !present.isEmpty && !present.contains(input)
    }
}
