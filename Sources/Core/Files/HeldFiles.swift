// SPDX-License-Identifier: Apache-2.0

/// The files that this process reads and writes at this moment, by device and inode.
///
/// Locks (flock(2)) say the same to other programs. This list also works where a file system has no locks, and it
/// names the user. Each entry belongs to an open descriptor, so that an inode is not used again while it stands
/// here. Safe from every thread; no system call is made under its lock.
final class HeldFiles: Sendable {
    static let shared = HeldFiles()

    private struct Hold {
        var number: UInt64
        var name: String
        var isWriter: Bool
    }

    private struct State {
        var holds: [FileIdentity: [Hold]] = [:]
        var next: UInt64 = 0
    }

    private let state = Locked(State())

    /// Notes that a stage uses the file from now on. It does not ask whether another one does.
    ///
    /// - Returns: The number that `remove` takes.
    func add(_ identity: FileIdentity, name: String, isWriter: Bool) -> UInt64 {
        state.withLock { state in
            state.next &+= 1
            state.holds[identity, default: []].append(Hold(number: state.next, name: name, isWriter: isWriter))
            return state.next
        }
    }

    /// Notes that a stage writes the file from now on, unless another one uses it. Looking and noting are one step.
    ///
    /// - Parameter own: A hold that does not count, since it is the caller's own.
    func claim(_ identity: FileIdentity, name: String, except own: UInt64?) -> (use: FileFacts.Use, hold: UInt64?) {
        state.withLock { state in
            let others = (state.holds[identity] ?? []).filter { $0.number != own }
            if let writer = others.first(where: \.isWriter) { return (.writes(writer.name), nil) }
            if let reader = others.first { return (.reads(reader.name), nil) }
            state.next &+= 1
            state.holds[identity, default: []].append(Hold(number: state.next, name: name, isWriter: true))
            return (.nobody, state.next)
        }
    }

    func remove(_ identity: FileIdentity, _ number: UInt64) {
        state.withLock { state in
            guard var holds = state.holds.removeValue(forKey: identity) else { return }
            holds.removeAll { $0.number == number }
            if !holds.isEmpty { state.holds[identity] = holds }
        }
    }

    /// For tests: how many files are held.
    var count: Int { state.withLock { $0.holds.count } }
}
