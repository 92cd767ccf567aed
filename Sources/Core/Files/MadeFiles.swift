// SPDX-License-Identifier: Apache-2.0

/// The files that the runs of this process have made, by device and inode: those of each chain, as long as its run
/// exists. A chain does not replace what a chain beside it has recorded.
///
/// Safe from every thread; no system call is made under its lock.
final class MadeFiles: Sendable {
    static let shared = MadeFiles()

    private let runs = Locked([FileIdentity: UInt64]())

    /// The run that has made the file; nil where none of this process has.
    func run(of identity: FileIdentity) -> UInt64? { runs.withLock { $0[identity] } }

    func add(_ identity: FileIdentity, run: UInt64) { runs.withLock { $0[identity] = run } }

    /// The file has gone, or does not count as made any more.
    func remove(_ identity: FileIdentity) { runs.withLock { _ = $0.removeValue(forKey: identity) } }

    /// The run has ended: its files are those of an earlier run from here on.
    func forget(run: UInt64) { runs.withLock { $0 = $0.filter { $0.value != run } } }
}
