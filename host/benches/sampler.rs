//! What one sample costs, against a bare read of `stat`, `statm`, `io` and the number of descriptors of the same
//! processes: medians of CPU time (not wall time, so that other work on the machine hardly counts) and their ratio, from
//! one run in which both take turns.
//!
//! `cargo bench --bench sampler [PROCESSES] [ROUNDS]`

// The figures are this program's output.
#![allow(clippy::print_stdout)]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let processes = numbers.next().unwrap_or(2000);
    let rounds = numbers.next().unwrap_or(15);
    linux::run(processes, rounds)
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("what is compared here are two ways of reading Linux's procfs");
}

#[cfg(target_os = "linux")]
mod linux {
    use headcount::clock::SystemClock;
    use headcount::observe::processes::{Options, ProcessId, Sampler};
    use nix::dir::Dir;
    use nix::errno::Errno;
    use nix::fcntl::{AtFlags, OFlag, openat};
    use nix::sys::signal::{Signal, kill};
    use nix::sys::stat::{Mode, fstatat};
    use nix::time::{ClockId, clock_gettime};
    use nix::unistd::Pid;
    use std::error::Error;
    use std::fmt::Write as _;
    use std::process::{Child, Command};
    use std::sync::Arc;
    use std::time::Duration;

    /// Time between two samples: long enough for other work to take the caches.
    const INTERVAL: Duration = Duration::from_millis(200);

    /// Looks before the first figure: by then every proportional set size has been read once.
    const WARM_UP: u32 = 60;

    /// Processes that wait, and end with the run.
    struct Crowd(Vec<Child>);

    impl Crowd {
        fn gather(size: usize) -> std::io::Result<Self> {
            let mut crowd = Self(Vec::with_capacity(size));
            for _ in 0..size {
                crowd.0.push(Command::new("sleep").arg("600").spawn()?);
            }
            Ok(crowd)
        }

        /// Makes so many of a hundred run for a moment: being stopped, or continued, takes a process 16 µs.
        fn stir(&self, percent: usize, round: usize) {
            let signal = if round.is_multiple_of(2) { Signal::SIGSTOP } else { Signal::SIGCONT };
            for child in self.0.iter().enumerate().filter(|(at, _)| at % 100 < percent).map(|(_, child)| child) {
                // One that has ended cannot be stirred; the count below would show it.
                let _ = kill(pid(child), signal);
            }
        }
    }

    impl Drop for Crowd {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill();
            }
            for child in &mut self.0 {
                let _ = child.wait();
            }
        }
    }

    fn pid(child: &Child) -> Pid {
        Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
    }

    pub(super) fn run(processes: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
        let crowd = Crowd::gather(processes)?;
        let mut sampler = Sampler::new(Arc::new(SystemClock::default()), Options::default());
        sampler.refresh()?;
        let own = sampler.get(std::process::id()).ok_or("this process is not in the table")?.id;
        for _ in 0..WARM_UP {
            sample(&mut sampler, own, processes)?;
        }
        let proc = Dir::open("/proc", OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())?;
        println!("{processes} processes, {rounds} rounds, medians of CPU time");
        println!("{:>12} {:>12} {:>12} {:>8}", "ran since", "sampler", "bare read", "ratio");
        for percent in [0, 10, 100] {
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                crowd.stir(percent, round);
                std::thread::sleep(INTERVAL);
                let before = cpu_time()?;
                if round.is_multiple_of(2) {
                    sample(&mut sampler, own, processes)?;
                    let between = cpu_time()?;
                    read(&proc, &crowd)?;
                    ours.push(between - before);
                    bare.push(cpu_time()? - between);
                } else {
                    read(&proc, &crowd)?;
                    let between = cpu_time()?;
                    sample(&mut sampler, own, processes)?;
                    bare.push(between - before);
                    ours.push(cpu_time()? - between);
                }
            }
            crowd.stir(100, 1);
            let (ours, bare) = (median(ours), median(bare));
            let ratio = ours.as_secs_f64() / bare.as_secs_f64();
            println!("{percent:>10} % {:>9.2} ms {:>9.2} ms {ratio:>7.2}×", millis(ours), millis(bare));
        }
        Ok(())
    }

    fn sample(sampler: &mut Sampler, root: ProcessId, processes: usize) -> Result<(), Box<dyn Error>> {
        sampler.refresh()?;
        let readings = sampler.measure(&[root]);
        let counted = readings.first().and_then(|reading| reading.metrics.processes).unwrap_or(0);
        if usize::try_from(counted)? <= processes {
            return Err(format!("only {counted} processes are counted").into());
        }
        Ok(())
    }

    /// The least that anyone can do who reads every process at every sample.
    fn read(proc: &Dir, crowd: &Crowd) -> Result<(), Box<dyn Error>> {
        let mut listing = Dir::open("/proc", OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())?;
        let listed = listing.iter().count();
        let (mut buffer, mut path) = ([0; 4096], String::new());
        let name = |pid: u32, file: &str, path: &mut String| {
            path.clear();
            write!(path, "{pid}/{file}")
        };
        let mut bytes = listed;
        for child in &crowd.0 {
            let pid = child.id();
            for file in ["stat", "statm", "io"] {
                let file = openat(proc, format!("{pid}/{file}").as_str(), OFlag::O_RDONLY, Mode::empty())?;
                bytes += nix::unistd::read(&file, &mut buffer)?;
            }
            name(pid, "fd", &mut path)?;
            let size = fstatat(proc, path.as_str(), AtFlags::empty())?.st_size;
            bytes += usize::try_from(size).unwrap_or(0);
        }
        std::hint::black_box(bytes);
        Ok(())
    }

    /// CPU time of this process, its helper threads included.
    fn cpu_time() -> Result<Duration, Errno> {
        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
    }

    fn median(mut times: Vec<Duration>) -> Duration {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn millis(time: Duration) -> f64 {
        time.as_secs_f64() * 1000.0
    }
}
