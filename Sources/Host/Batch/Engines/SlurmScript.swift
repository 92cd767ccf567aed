// SPDX-License-Identifier: Apache-2.0

/// A batch as two scripts for Slurm: an array whose tasks are shards, and the report after it. Pure.
///
/// - SeeAlso: sbatch(1). The variables `SBATCH_…` of the person who submits override `#SBATCH` lines.
struct SlurmScript {
    let job: BatchJob

    /// `job.sh`.
    var array: String {
        let limit = job.tasksAtOnce.map { "%\($0)" } ?? ""
        return script(
            "the tasks of a batch. This script can be submitted again: outputs that are complete are not made again.",
            name: job.name,
            more: "#SBATCH --array=1-\(job.tasks)\(limit)\n#SBATCH --output=logs/%a.log\n",
            arguments: job.taskArguments.map { Self.quoted($0) + " " }.joined()
                + "--shard \"$SLURM_ARRAY_TASK_ID/\(job.tasks)\"")
    }

    /// `report.sh`.
    var report: String {
        script(
            "the end of a batch: does what its tasks have left, and writes the report.", name: "\(job.name)-report",
            more: "#SBATCH --output=logs/report.log\n",
            arguments: job.reportArguments.map(Self.quoted).joined(separator: " "))
    }

    private func script(_ what: String, name: String, more: String, arguments: String) -> String {
        let variables = job.variables.map { "export \($0.name)=\(Self.quoted($0.value))\n" }.joined()
        // Through exec the signals of scancel and of the time limit reach the program itself.
        return """
            #!/bin/sh
            # Written by framehost batch --on slurm: \(what)
            #SBATCH --job-name=\(name)
            \(more)#SBATCH --open-mode=append
            #SBATCH --requeue
            #SBATCH --nodes=1
            #SBATCH --ntasks=1
            #SBATCH --cpus-per-task=\(job.cores)
            #SBATCH --mem=\(job.memoryMiB)M
            \(variables)cd \(Self.quoted(job.current)) || exit 1
            exec \(([job.program] + job.arguments).map(Self.quoted).joined(separator: " ")) \(arguments)

            """
    }

    /// The text as one word of a shell, whatever its characters.
    static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
