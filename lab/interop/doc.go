// Package interop proves that docent's locks exclude those of Apache Curator and
// kazoo: processes of all three contend for the same paths of one real ZooKeeper.
// It consists of tests; docs/migrating-from-curator.md has their results.
//
// # The drivers
//
// java/CuratorDriver.java and python/kazoo_driver.py do what a test asks for, one
// line per command, and answer with one line:
//
//	7 anna lock mutex /some/path -1        command 7, for the actor anna
//	7 ok 4294967301                        its answer: held, with this fence
//	* revoked anna /some/path              something that no command asked for
//
// An answer is "ok" with results, "no" where a time limit was over before, or "error" with the
// exception. An actor is a session and one thread, made at its first command. Commands of one actor
// follow one another; those of different actors run concurrently. Data is in base64, behind a "=". A
// limit is in milliseconds, and -1 is none.
//
//	connect SERVERS TIMEOUT                answers the session's id
//	close
//	lock KIND PATH LIMIT                   answers the fence: the czxid of the lock's znode; of each, for multi
//	unlock KIND PATH
//	interrupt                              Curator; at once, whatever the actor is about
//	participants | contenders KIND PATH    Curator: paths; kazoo: data
//	permits PATH MAX                       Curator; the names of the znodes of a semaphore's permits
//	holders KIND PATH                      kazoo; data of a semaphore's permits
//	ids KIND PATH                          Curator; of an election's participants, the leader first
//	revocable KIND PATH                    Curator; to be said before each lock
//	revoke NODE                            Curator
//	create | create-gzip | set-gzip PATH DATA
//	data | data-gzip PATH
//	count PATH DELTA                       answers the shared count after DELTA was added
//	add PATH DELTA                         Curator; answers the DistributedAtomicLong after DELTA was added
//	share PATH DATA                        Curator; sets a SharedValue
//	acquire PATH MAX N LIMIT               Curator; N permits of a semaphore; MAX may be the path of a SharedCount
//	bar | unbar PATH, pass PATH LIMIT      barrier
//	enter | leave PATH MEMBERS LIMIT       double barrier
//	keep PATH DATA LIMIT                   Curator; PersistentNode, ephemeral
//	keep-ttl PATH DATA MILLISECONDS        Curator; PersistentTtlNode
//	join PATH ID DATA                      Curator; GroupMember
//	members PATH                           Curator; the ids, each with its data
//	release PATH                           Curator; closes what keep, keep-ttl, join and acquire have begun
//
// DiscoveryDriver.java is another driver, for Curator's x-discovery:
//
//	register | update | unregister BASE CLASS NAME ID PORT KIND PAYLOAD enabled|disabled
//	names BASE CLASS
//	query | cached BASE CLASS NAME         the instances, each as text
//
// CLASS is the payload's class: place, map or object. With the prefix "enabled-" the serializer also
// writes whether an instance is enabled.
//
// Kinds of locks are Curator's mutex, mutex-gzip, semaphore, read, write and multi (whose PATH is
// several, with commas), its elections latch and selector, and those of kazoo_driver.py's table. A
// driver ends with its input. On Linux, the end of the test also kills a driver that hangs.
//
// # The oracle
//
// The test notes when a client asks for a lock, is granted it, and is asked to release it, with the lock's
// fence. Package history then finds an order of these moments that a lock allows, or the lock has failed.
// Nothing of it is in ZooKeeper.
//
// # What is needed
//
// A ZooKeeper, as package zktest has it. Curator needs a JDK 11 or newer and either Debian's packages
// libcurator-recipes-java and libcurator-discovery-java or a directory of jars at CURATOR_HOME. kazoo
// needs a python3 that can import it. scripts/setup-interop installs them where apt-get can. Tests that
// find something missing are skipped or fail as ZK_TEST says, which package zktest explains.
package interop
