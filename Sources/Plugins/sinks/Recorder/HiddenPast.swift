// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Whether a stage before the recorder hides something. Where one has been put there, the past shows what is hidden: it
/// is in no recording that begins from then on.
struct HiddenPast {
    private var wasGuarded: Bool
    /// Since when units are kept for later, chain clock.
    private(set) var keptSince = Int64.min

    init(_ context: StageContext) { wasGuarded = context.isGuarded }

    /// Forgets what must no longer be seen. A recording that waits for room is from before.
    mutating func forget(_ ring: PreEventRing?, isWaiting: Bool, _ context: StageContext) {
        let isGuarded = context.isGuarded
        guard isGuarded != wasGuarded else { return }
        wasGuarded = isGuarded
        guard isGuarded, !isWaiting, let ring else { return }
        keptSince = context.clock.now()
        guard !ring.isEmpty else { return }
        ring.removeAll()
        context.log(
            "\(context.stageID): The seconds before a recording ('preEventSeconds') begin anew: a stage before this one hides something from now on, which they show."
        )
    }
}
