// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// What all slots of a batch share. Each member is immutable or has locks of its own.
final class BatchWork: Sendable {
    let units: BatchUnits
    let out: String
    /// The folder at which relative inputs start.
    let current: String
    let chainFile: String
    let chain: ChainIdentity
    /// The chain file and the images of its plugins, as they were when the batch began.
    let stamps: FileStamps
    let identity: InputIdentity.Kind
    let attempts: Int
    let isRetrying: Bool
    /// Whether outputs of damaged inputs are kept: `--accept-damaged`.
    let acceptsDamaged: Bool
    /// `run` and the arguments that follow it, for every worker.
    let arguments: [String]
    let owner: BatchOwner
    let gate: MemoryGate
    let tally: BatchTally
    let queue: BatchQueue
    /// The length of each part into which a long input is divided, in seconds: `--parts`. Nil to divide none.
    let parts: Double?

    init(
        units: BatchUnits, out: String, current: String, chainFile: String, chain: ChainIdentity,
        stamps: FileStamps, identity: InputIdentity.Kind, attempts: Int, isRetrying: Bool, acceptsDamaged: Bool,
        arguments: [String],
        owner: BatchOwner,
        gate: MemoryGate, tally: BatchTally, queue: BatchQueue, parts: Double?
    ) {
        self.units = units
        self.out = out
        self.current = current
        self.chainFile = chainFile
        self.chain = chain
        self.stamps = stamps
        self.identity = identity
        self.attempts = attempts
        self.isRetrying = isRetrying
        self.acceptsDamaged = acceptsDamaged
        self.arguments = arguments
        self.owner = owner
        self.gate = gate
        self.tally = tally
        self.queue = queue
        self.parts = parts
    }

    private let hasStopped = Atomic<Bool>(false)

    /// Ends the batch, and reports the reason once.
    func stop(because path: String) {
        guard !hasStopped.exchange(true, ordering: .relaxed) else { return }
        tally.warn("\(path) changed while the batch ran, so the batch stops. Run the same command again.")
        tally.stop()
    }
}
