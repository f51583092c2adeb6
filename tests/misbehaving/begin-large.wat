;; Has 30 MiB from the start, and judges well.
(memory (export "memory") 480)
