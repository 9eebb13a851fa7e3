/* The ledger that the attempts of one session share. README.md says what stands for what. */

#ifndef ATTEMPTS
#define ATTEMPTS 2      /* contenders of ours */
#endif
#ifndef PER
#define PER ATTEMPTS    /* how many of them share a session, and its ledger */
#endif
#ifndef ROUNDS
#define ROUNDS 1        /* how often each of them takes the lock */
#endif
#ifndef FOREIGN
#define FOREIGN 1       /* how often a contender takes the lock that always lists, as Curator does */
#endif
#ifndef REAPS
#define REAPS 0         /* removals of the directory when it is empty */
#endif
#ifndef CUTS
#define CUTS 0          /* connections that break, with replies lost */
#endif
#ifndef DELETIONS
#define DELETIONS 0     /* znodes of waiters that an operator deletes */
#endif
#ifndef CANCELS
#define CANCELS 0       /* attempts that are given up */
#endif
#ifndef WRITES
#define WRITES 0        /* how often somebody sets the directory's data */
#endif
#ifndef IMPATIENCE
#define IMPATIENCE 0    /* attempts that do not wait for another's listing to the end */
#endif
#ifndef DOWNGRADES
#define DOWNGRADES 1    /* with READ_WRITE: writers that go on as readers */
#endif

#define SESSIONS ((ATTEMPTS + PER - 1) / PER)
#define SESSION(a) ((a) / PER)
#define NONE 63         /* no znode, no number */

/* A znode's name tells the life of the directory that it is of, since it has a guid,
   its number in that, and whether it stands beside the one that has the number. */
#ifndef SEQS
#define SEQS 6          /* numbers that the directory's counter can give */
#endif
#ifdef READ_WRITE
#define W 2
#else
#define W 1
#endif
#define IDS ((1 + REAPS) * SEQS * W)
#define ID(n)      ((life * SEQS + (n)) * W)
#define BESIDE(id) ((id) + 1)
#define NUMBER(id) (((id) / W) % SEQS)
#define LIFE(id)   ((id) / (SEQS * W))
#define BIT(id)    (1 << (id))
#define HAS(m, id) (((m) >> (id)) & 1)
#define WITHOUT(m, id) ((m) & ~BIT(id))
#define LOW(n)     ((1 << ((n) * W)) - 1)
#define BELOW(n)   (LOW(n) | (LOW(n) << (SEQS * W)))   /* all of a lesser number */

#ifdef READ_WRITE
#ifndef WRITERS
#define WRITERS (ATTEMPTS - 1)  /* the other attempts of ours are readers; the foreign one is a writer */
#endif
#define READER(a) ((a) >= WRITERS)
#define AHEAD(id) (BELOW(NUMBER(id)) & ~(shared * HAS(shared, id)))   /* readers wait for writers only */
#else
#define READER(a) false
#define AHEAD(id) BELOW(NUMBER(id))
#endif

mtype = { Created, Guarded, Listed, Armed, Deleted,     /* replies */
	Gone, Fired, Cut };                             /* events */

/* The ensemble. */
bool dir = true;        /* the directory exists */
byte life;              /* how often it was made anew */
byte counter;
int  up;                /* znodes that stand, one bit each */
int  shared;            /* those of readers; their names say so */
bool guarded[SESSIONS]; /* a watch on the directory */
int  watches[SESSIONS];
byte epoch[SESSIONS];   /* how often the connection broke */

/* Replies and events, in the order in which the server sends them. */
chan rep[SESSIONS] = [8] of { mtype, byte, byte, int };

/* The ledgers. */
byte upto[SESSIONS];
byte dirOf[SESSIONS];   /* which life of the directory the listing was of */
int  nodes[SESSIONS];
int  first[SESSIONS];   /* those that had nobody ahead from the start */
int  marked[SESSIONS];  /* those that have to list */
bool guard[SESSIONS];   /* it stands, as far as replies and events up to now tell */
byte guardOf[SESSIONS];
byte base[SESSIONS];    /* whose listing others wait for, plus one */
int  arrived[SESSIONS]; /* meanwhile */

/* The attempts. */
byte own[ATTEMPTS];     /* its znode, once the create has been answered */
byte made[ATTEMPTS];    /* what the ensemble finds by the guid */
bool awaits[ATTEMPTS];  /* the base's listing */
bool set[ATTEMPTS];     /* the guard that it set stands */
byte setOf[ATTEMPTS];
mtype heard[ATTEMPTS];  /* what was answered last, but for a create */
byte listOf[ATTEMPTS];
int  list[ATTEMPTS];
byte ahead[ATTEMPTS];
bool ownStood[ATTEMPTS], aheadStood[ATTEMPTS];
bool ownFired[ATTEMPTS], aheadFired[ATTEMPTS];
byte sent[ATTEMPTS];    /* the epoch of what it asked last */
bool lost[ATTEMPTS];    /* the connection that it asked on has broken */

byte done;
byte writers, readers;
int  fence = -1;
byte reaps, cuts, deletions, cancels, writes, downgrades, impatience;

inline reply(s, type, a, arg, m) { assert(nfull(rep[s])); rep[s]!type,a,arg,m }

/* A znode is created, with the directory if need be. */
inline create(id, reads)
{
	if
	:: !dir -> dir = true; counter = 0; life++
	:: else
	fi;
	assert(counter < SEQS);
	id = ID(counter); counter++;
	up = up | BIT(id);
	if
	:: reads -> shared = shared | BIT(id)
	:: else
	fi
}

inline vanish(id)
{
	up = WITHOUT(up, id);
	w = 0;
	do
	:: w < SESSIONS ->
		if
		:: HAS(watches[w], id) -> watches[w] = WITHOUT(watches[w], id); reply(w, Gone, 0, id, 0)
		:: else
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

inline fireGuards()
{
	w = 0;
	do
	:: w < SESSIONS ->
		if
		:: guarded[w] -> guarded[w] = false; reply(w, Fired, 0, 0, 0)
		:: else
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

/* pass is what is done when a znode is known to have gone. */
inline pass(s, id)
{
	if
	:: HAS(nodes[s], id) ->
		nodes[s] = WITHOUT(nodes[s], id);
#if defined(READ_WRITE) && !defined(HEIRS_UNMARKED)
		if
#ifdef ARRIVED_UNMARKED
		:: !HAS(shared, id) -> marked[s] = marked[s] | (nodes[s] & ~shared & ~BELOW(NUMBER(id) + 1))
#else
		:: !HAS(shared, id) -> marked[s] = marked[s] | ((nodes[s] | arrived[s]) & ~shared & ~BELOW(NUMBER(id) + 1))
#endif
		:: else
		fi
#endif
	:: else
	fi
}

/* The guard and the listing are of one directory. */
#ifdef NO_CZXID
#define STANDS(s) (upto[s] != NONE && guard[s])
#else
#define STANDS(s) (upto[s] != NONE && guard[s] && guardOf[s] == dirOf[s])
#endif

#ifdef NOT_CONTIGUOUS
#define NEXT(s, id) (NUMBER(id) > upto[s])
#else
#define NEXT(s, id) (NUMBER(id) == upto[s] + 1)
#endif

/* add takes a znode of the session's own into the ledger. */
inline add(s, id)
{
	nodes[s] = nodes[s] | BIT(id);
	upto[s] = NUMBER(id);
	if
	:: (nodes[s] & AHEAD(id)) == 0 -> first[s] = first[s] | BIT(id)
	:: else -> first[s] = WITHOUT(first[s], id)
	fi
}

/* renew takes over what a listing shows, and keeps what came behind it. */
inline renew(s, a)
{
	n = 0; k = NONE;
	do
	:: n < IDS ->
		if
		:: HAS(list[a], n) && (k == NONE || NUMBER(n) > k) -> k = NUMBER(n)
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0;
	if
	:: k == NONE -> upto[s] = NONE; nodes[s] = 0
#ifdef FORGET_BEHIND
	:: k != NONE && upto[s] != NONE && dirOf[s] == listOf[a] && upto[s] > k ->
		nodes[s] = list[a]
#else
	:: k != NONE && upto[s] != NONE && dirOf[s] == listOf[a] && upto[s] > k ->
		nodes[s] = list[a] | (nodes[s] & ~BELOW(k + 1))
#endif
	:: else -> nodes[s] = list[a]; upto[s] = k; dirOf[s] = listOf[a]
	fi;
	if
	:: k != NONE ->
		first[s] = first[s] & nodes[s] & ~BELOW(k + 1);
#ifdef CLEAR_ALL_MARKS
		marked[s] = 0
#else
		marked[s] = marked[s] & ~BELOW(k + 1)
#endif
	:: else -> first[s] = 0; marked[s] = 0
	fi;
	k = 0
}

/* Whether the znode was created in the directory that the guard is on, not in an earlier one: czxids tell. */
#ifdef OLDER_ARRIVED
#define IN_GUARDED(s, id) true
#else
#define IN_GUARDED(s, id) (LIFE(id) >= guardOf[s])
#endif

/* conclude ends the base, which has listed or failed to. */
inline conclude(s, a, listed)
{
	if
	:: base[s] == a + 1 ->
		base[s] = 0;
		if
		:: setOf[a] != NONE -> guard[s] = set[a]; guardOf[s] = setOf[a]; set[a] = false; setOf[a] = NONE
		:: else
		fi;
		if
		:: listed -> renew(s, a)
		:: else
		fi;
		n = 0;
		do
		:: n < IDS ->
#ifdef FOLD_WITHOUT_LISTING
			if
			:: STANDS(s) && HAS(arrived[s], n) && NEXT(s, n) && IN_GUARDED(s, n) -> add(s, n)
#else
			if
			:: listed && STANDS(s) && HAS(arrived[s], n) && NEXT(s, n) && IN_GUARDED(s, n) -> add(s, n)
#endif
			:: else
			fi;
			n++
		:: else -> break
		od;
		n = 0;
		marked[s] = marked[s] & nodes[s];
		arrived[s] = 0;
#ifdef NOT_TOLD
		if
		:: listed -> tell(s)
		:: else
		fi
#else
		tell(s)
#endif
	:: else
	fi
}

inline tell(s)
{
	w = 0;
	do
	:: w < ATTEMPTS ->
		if
		:: SESSION(w) == s -> awaits[w] = false
		:: else
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

inline unguard()
{
	guard[s] = false;
	w = 0;
	do
	:: w < ATTEMPTS ->
		if
		:: SESSION(w) == s -> set[w] = false
		:: else
		fi;
		w++
	:: else -> break
	od
}

/* The reader of a session's connection: what is done in the order of replies and events. */
proctype Reader(byte s)
{
	mtype type; byte a, arg, w; int m;
end:
	do
	:: atomic { rep[s]?type,a,arg,m ->
		if
		:: type == Created ->
			own[a] = arg;
			if
			:: base[s] != 0 -> arrived[s] = arrived[s] | BIT(arg)
			:: base[s] == 0 && STANDS(s) && NEXT(s, arg) -> add(s, arg)
			:: else
			fi
		:: type == Guarded -> heard[a] = Guarded; set[a] = (arg != NONE); setOf[a] = arg
		:: type == Listed -> heard[a] = Listed; listOf[a] = arg; list[a] = m
		:: type == Armed -> heard[a] = Armed; ownStood[a] = arg & 1; aheadStood[a] = arg >> 1
		:: type == Deleted -> heard[a] = Deleted
		:: type == Gone ->
			w = 0;
			do
			:: w < ATTEMPTS ->
				if
				:: SESSION(w) == s && own[w] == arg -> ownFired[w] = true
				:: SESSION(w) == s && ahead[w] == arg -> aheadFired[w] = true
				:: else
				fi;
				w++
			:: else -> break
			od
		:: type == Fired ->
#ifndef NO_GUARD
			unguard()
#endif
		:: type == Cut ->
#ifndef GUARD_OUTLIVES_CUT
			unguard();
#endif
			w = 0;
			do
			:: w < ATTEMPTS ->
				if
				:: SESSION(w) == s && sent[w] < arg -> lost[w] = true
				:: else
				fi;
				w++
			:: else -> break
			od
		fi;
		type = 0; a = 0; arg = 0; m = 0; w = 0 }
	od
}

inline request(s, a) { sent[a] = epoch[s]; lost[a] = false; heard[a] = 0 }

inline leave()
{
	if
	:: READER(me) -> readers--
	:: else -> writers--
	fi
}

/* nearest sets ahead to the last of those. */
inline nearest(m)
{
	ahead[me] = NONE;
	w = 0;
	do
	:: w < IDS ->
		if
		:: HAS(m, w) && (ahead[me] == NONE || NUMBER(w) >= NUMBER(ahead[me])) -> ahead[me] = w
		:: else
		fi;
		w++
	:: else -> break
	od;
	w = 0
}

#define GIVE_UP cancels < CANCELS -> cancels++

proctype Attempt(byte me)
{
	byte s = SESSION(me);
	byte id, n, k, w, round;
	bool lists;                         /* a listing goes with the create */

enter:
	/* The plan. */
	atomic {
		own[me] = NONE; ahead[me] = NONE; lists = false; list[me] = 0; listOf[me] = 0;
		ownFired[me] = false; aheadFired[me] = false; heard[me] = 0; awaits[me] = false;
		if
		:: base[s] != 0 -> awaits[me] = true; goto enroll
		:: base[s] == 0 && STANDS(s) -> goto enroll
		:: base[s] == 0 && !STANDS(s) -> lists = true; base[s] = me + 1
#ifdef SOME_LIST
		:: base[s] == 0 && !STANDS(s) -> lists = true; goto enroll
#endif
		fi
	}
	/* The guard. Where there is no directory there is none. */
	atomic {
		request(s, me);
		n = (dir -> life : NONE);
		if
		:: dir -> guarded[s] = true
		:: else
		fi;
		reply(s, Guarded, me, n, 0); n = 0
	}
	if
	:: atomic { heard[me] == Guarded -> heard[me] = 0 }
	:: atomic { lost[me] -> setOf[me] = NONE }
	:: atomic { GIVE_UP; conclude(s, me, false); goto finished }
	fi;
enroll:
	atomic {
		create(id, READER(me));
		made[me] = id; request(s, me); reply(s, Created, me, id, 0); id = 0
	}
	atomic {
		if
		:: lists && sent[me] == epoch[s] -> n = (dir -> life : NONE); reply(s, Listed, me, n, up); n = 0
		:: else
		fi
	}
	if
	:: atomic { own[me] != NONE && (!lists || heard[me] == Listed) ->
		heard[me] = 0;
		if
		:: lists && base[s] == me + 1 -> conclude(s, me, true); goto decide
		:: lists && base[s] != me + 1 -> renew(s, me); goto decide
		:: else
		fi }
	:: atomic { lost[me] ->
		/* By its guid the znode is found, if there is one. */
		conclude(s, me, false);
		lists = false;
		if
		:: own[me] == NONE && HAS(up, made[me]) -> own[me] = made[me]
		:: own[me] == NONE && !HAS(up, made[me]) -> goto enter
		:: else
		fi }
	:: atomic { own[me] != NONE && GIVE_UP; goto withdraw }
	fi;

	/* By the ledger, if that will do, and if nobody knows the znode to have stood
	   since somebody was ahead of it: only if there never was anybody. */
	if
	:: atomic { !awaits[me] }
	:: atomic { awaits[me] && impatience < IMPATIENCE -> impatience++; awaits[me] = false }
	:: atomic { awaits[me] && GIVE_UP; goto withdraw }
	fi;
	atomic {
		if
		:: HAS(nodes[s], own[me]) && !HAS(marked[s], own[me]) ->
			nearest(nodes[s] & AHEAD(own[me]));
			if
#ifdef UNSEEN
			:: ahead[me] == NONE -> goto grant
#else
			:: ahead[me] == NONE && HAS(first[s], own[me]) -> goto grant
			:: ahead[me] == NONE && !HAS(first[s], own[me]) -> goto look
#endif
			:: else -> goto arm
			fi
		:: else
		fi
	}

look:
	atomic { request(s, me); n = (dir -> life : NONE); reply(s, Listed, me, n, up); n = 0 }
	if
	:: atomic { GIVE_UP; goto withdraw }
	:: atomic { lost[me] -> goto look }
	:: atomic { heard[me] == Listed -> renew(s, me) }
	fi;
decide:
	/* What the listing shows. */
	atomic {
		heard[me] = 0; lists = false;
		if
		:: !HAS(list[me], own[me]) -> goto anew
		:: else
		fi;
		nearest(list[me] & AHEAD(own[me]));
		list[me] = 0; listOf[me] = 0;
		if
		:: ahead[me] == NONE -> goto grant
		:: else
		fi
	}

arm:
	atomic {
		ownFired[me] = false; aheadFired[me] = false;
		request(s, me);
		n = 0;
		if
		:: HAS(up, own[me]) -> watches[s] = watches[s] | BIT(own[me]); n = n | 1
		:: else
		fi;
		if
		:: HAS(up, ahead[me]) -> watches[s] = watches[s] | BIT(ahead[me]); n = n | 2
		:: else
		fi;
		reply(s, Armed, me, n, 0); n = 0
	}
	if
	:: atomic { GIVE_UP; goto withdraw }
	:: atomic { lost[me] -> goto look }
	:: atomic { heard[me] == Armed ->
		heard[me] = 0;
		if
		:: !ownStood[me] -> aheadStood[me] = false; goto anew
		:: ownStood[me] && !aheadStood[me] -> aheadFired[me] = true
		:: else
		fi;
		ownStood[me] = false; aheadStood[me] = false }
	fi;
	if
	:: atomic { GIVE_UP; goto withdraw }
	:: atomic { lost[me] -> goto look }
	:: atomic { ownFired[me] && !aheadFired[me] -> goto look }
	:: atomic { aheadFired[me] ->
		pass(s, ahead[me]);
		aheadFired[me] = false;
		if
#ifdef OWN_FIRED
		:: !HAS(nodes[s], own[me]) || HAS(marked[s], own[me]) -> goto look
#else
		:: !HAS(nodes[s], own[me]) || HAS(marked[s], own[me]) || ownFired[me] || lost[me] -> goto look
#endif
		:: else
		fi;
		nearest(nodes[s] & AHEAD(own[me]));
		if
		:: ahead[me] == NONE -> goto grant
		:: else -> goto look
		fi }
	fi;

grant:
	skip;
	atomic {
		ahead[me] = NONE; ownFired[me] = false; aheadFired[me] = false; lists = false;
		/* It stands, and nobody ahead of it. */
		assert(HAS(up, own[me]));
		assert((up & AHEAD(own[me])) == 0);
		if
		:: READER(me) -> readers++
		:: else -> writers++
		fi;
		assert(writers == 0 || writers == 1 && readers == 0);
#ifndef READ_WRITE
		assert(own[me] > fence); fence = own[me]
#endif
	}
#ifdef READ_WRITE
	if
	:: atomic { !READER(me) && downgrades < DOWNGRADES ->
		downgrades++;
		assert(counter < SEQS);
		counter++; up = up | BIT(BESIDE(own[me])); shared = shared | BIT(BESIDE(own[me]));
		writers--; readers++ };
		atomic { request(s, me); id = own[me]; vanish(id); reply(s, Deleted, me, 0, 0) };
		atomic { heard[me] == Deleted || lost[me] -> pass(s, own[me]); heard[me] = 0; own[me] = BESIDE(own[me]); id = 0 };
		atomic { readers-- }
	:: atomic { leave() }
	fi;
#else
	atomic { leave() }
#endif
	atomic { request(s, me); id = own[me]; vanish(id); reply(s, Deleted, me, 0, 0) }
	atomic { heard[me] == Deleted || lost[me] ->
		if
		:: heard[me] == Deleted -> pass(s, own[me])
		:: else
		fi;
		heard[me] = 0; round++; id = 0;
		if
		:: round < ROUNDS -> goto enter
		:: else -> goto finished
		fi }

anew:
	atomic {
		if
		:: HAS(up, own[me]) -> id = own[me]; vanish(id); id = 0
		:: else
		fi;
		list[me] = 0; listOf[me] = 0; ownStood[me] = false;
		goto enter
	}

withdraw:
	atomic {
		conclude(s, me, false);
		if
		:: HAS(up, own[me]) -> id = own[me]; vanish(id); id = 0
		:: else
		fi
	}

finished:
	atomic {
		done++; own[me] = NONE; ahead[me] = NONE; made[me] = NONE; list[me] = 0; listOf[me] = 0; setOf[me] = NONE; set[me] = false;
		sent[me] = 9; round = 0; lost[me] = false; awaits[me] = false; lists = false; ownFired[me] = false; aheadFired[me] = false
	}
}

/* A contender that looks whenever it likes, and sees what is. */
proctype Foreign()
{
	byte mine = NONE, w, round;
again:
	atomic { create(mine, false) }
	atomic {
		!HAS(up, mine) || (up & AHEAD(mine)) == 0 ->
		if
		:: !HAS(up, mine) -> mine = NONE; goto again
		:: else
		fi;
		writers++;
		assert(writers == 1 && readers == 0);
#ifndef READ_WRITE
		assert(mine > fence); fence = mine
#endif
	}
#ifdef READ_WRITE
	if
	:: atomic { downgrades < DOWNGRADES ->
		downgrades++;
		assert(counter < SEQS);
		counter++; up = up | BIT(BESIDE(mine)); shared = shared | BIT(BESIDE(mine));
		writers--; readers++ };
		atomic { vanish(mine); mine = BESIDE(mine) };
		atomic { readers--; vanish(mine) }
	:: atomic { writers--; vanish(mine) }
	fi;
#else
	atomic { writers--; vanish(mine) }
#endif
	atomic {
		round++; mine = NONE;
		if
		:: round < FOREIGN -> goto again
		:: else -> done++
		fi
	}
}

inline cut(s)
{
	do
	:: nempty(rep[s]) -> rep[s]?_,_,_,_
	:: empty(rep[s]) -> break
	od;
	watches[s] = 0; guarded[s] = false;
	epoch[s]++;
	rep[s]!Cut,0,epoch[s],0
}

#define OPERATOR(id) \
	:: atomic { deletions < DELETIONS && HAS(up, id) && (up & AHEAD(id)) != 0 -> deletions++; vanish(id) }

proctype Faults()
{
	byte w;
end:
	do
	:: atomic { reaps < REAPS && dir && up == 0 -> reaps++; dir = false; fireGuards() }
	:: atomic { writes < WRITES && dir -> writes++; fireGuards() }
	:: atomic { cuts < CUTS && (guarded[0] || watches[0] != 0 || nempty(rep[0])) -> cuts++; cut(0) }
#if DELETIONS > 0
	OPERATOR(1) OPERATOR(2) OPERATOR(3) OPERATOR(4)
#endif
	od
}

init
{
	byte i;
	atomic {
		do
		:: i < SESSIONS -> upto[i] = NONE; run Reader(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < ATTEMPTS -> own[i] = NONE; ahead[i] = NONE; setOf[i] = NONE; made[i] = NONE; run Attempt(i); i++
		:: else -> break
		od;
		i = 0;
		run Faults();
#if FOREIGN > 0
		run Foreign()
#endif
	}
	/* No ghost. */
	atomic {
		done == ATTEMPTS + (FOREIGN > 0) ->
		assert(up == 0); assert(writers == 0 && readers == 0)
	}
}
