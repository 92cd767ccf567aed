// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Reports

/// Reports what is missing in the sound of a card, once a second at most; nothing of it stays unsaid.
struct GapReports {
    private let context: StageContext
    private let figures: SoundFigures
    private var reported = Reported()
    /// Of what has happened since the last report: how much is missing, milliseconds, and the cause.
    private var untold: (missing: Int, why: String, isFilled: Bool)?

    init(_ context: StageContext, _ figures: SoundFigures) { (self.context, self.figures) = (context, figures) }

    /// Reports what was not reported, at the end.
    mutating func tellRest(now: Int64) {
        guard let untold else { return }
        reported.forget("overrun")
        self.untold = nil
        tell(overrun: untold.why, untold.missing, isFilled: untold.isFilled, now: now)
    }

    private func gap(_ missing: Int, isFilled: Bool) -> String {
        isFilled
            ? "\(missing > 0 ? "" : "less than ")\(max(missing, 1)) ms of sound is missing and replaced by silence."
            : "\(missing) ms of sound is missing and not replaced by silence, since it is more than \(SoundTimeline.longestSilence) s: the times jump."
    }

    mutating func tell(jumpBy by: Int, isFilled: Bool, now: Int64) {
        guard reported.isDue("sound-jumped", now: now, every: 1_000_000_000) else { return }
        context.post(
            "sound-jumped", level: .warning,
            text: by < 0
                ? "The card's time stamps have jumped back: \(-by) ms of sound is left out."
                : "The card's time stamps have jumped: \(gap(by, isFilled: isFilled))",
            details: ["byMs": .number(by)])
    }

    mutating func tell(overrun why: String, _ missing: Int, isFilled: Bool, now: Int64) {
        guard reported.isDue("overrun", now: now, every: 1_000_000_000) else {
            untold = ((untold?.missing ?? 0) + missing, why, (untold?.isFilled ?? true) && isFilled)
            return
        }
        let (missing, isFilled) = (missing + (untold?.missing ?? 0), isFilled && untold?.isFilled ?? true)
        untold = nil
        let count = figures.overruns.load(ordering: .relaxed)
        context.post(
            "overrun", level: .warning,
            text: "\(why): \(gap(missing, isFilled: isFilled))",
            details: ["missingMs": .number(missing), "overruns": .number(count)])
    }
}
